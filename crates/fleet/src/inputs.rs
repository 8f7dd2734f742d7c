//! The answer to a poll: all inputs of one type for one cluster, whole and checked, or a refusal.
//!
//! A poll gathers text. What does not depend on the poll was written down when its document was read: the plain input
//! of each definition, the patches and the identity of each cluster. Only a reference that overrides something is merged
//! anew, of texts too. References are numbers of places in the catalogue, so no name is compared; the answer is written
//! once.

use std::collections::BTreeMap;

use model::{Id, ResourceType, helm};

use crate::{
    Answer, Cluster, Definition, Snapshot, SnapshotError,
    answer::List,
    catalogue::{Catalogue, Version},
    definition::unpatched,
    merge::Members,
    order::Order,
};

/// The largest answer that Flux Operator reads. It keeps everything when an answer is larger, so does this server.
pub const MAX_BYTES: usize = 921_600;

/// The most inputs that a provider can be told to take; it cuts the rest off without a word.
pub const MAX_INPUTS: usize = 10_000;

/// How "no inputs" is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// As an empty list.
    Bare,
    /// As one record that says so, for cluster sides on which an absence never deletes.
    Explicit,
}

/// Why there is no answer. An error status makes Flux keep what it has.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No cluster polls under this name, and none ever did.
    #[error("no cluster has this DNS name")]
    UnknownCluster,
    /// Several clusters claim the name.
    #[error("the clusters {} claim the same DNS name", list(.0))]
    AmbiguousDns(Vec<Id>),
    /// A patch has no meaning.
    #[error("the patches of \"{id}\" cannot be expanded: {error}")]
    Patch {
        /// What is patched.
        id: Id,
        /// What is wrong.
        error: helm::PatchError,
    },
    /// A list names one definition twice.
    #[error("\"{0}\" is in the list twice")]
    DuplicateInput(String),
    /// More inputs than a provider takes.
    #[error("the answer has {0} inputs, more than the {MAX_INPUTS} that Flux takes")]
    TooManyInputs(usize),
    /// More bytes than Flux reads.
    #[error("the answer has {0} bytes, more than the {MAX_BYTES} that Flux reads")]
    TooLarge(usize),
    /// The list of the type is empty, and the cluster has one that no type reads.
    #[error("no resource type reads the cluster's list \"{0}\", so an empty list may be a mistake")]
    UnreadList(String),
    /// A definition is missing, and a document of that id is of a kind that no type declares.
    #[error("\"{0}\" is there, but of a kind that no resource type declares")]
    UnreadDefinition(Id),
    /// A document cannot be read.
    #[error(transparent)]
    Unreadable(#[from] SnapshotError),
    /// The fleet knows no cluster, not even a decommissioned one: a blank store, not an empty fleet.
    #[error("the fleet knows no cluster, not even a decommissioned one")]
    BlankFleet,
}

impl Refusal {
    /// Its stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownCluster => "unknown-cluster",
            Self::AmbiguousDns(_) => "ambiguous-dns",
            Self::Patch { .. } => "invalid-patch",
            Self::DuplicateInput(_) => "duplicate-input",
            Self::TooManyInputs(_) => "too-many-inputs",
            Self::TooLarge(_) => "answer-too-large",
            Self::UnreadList(_) => "unread-list",
            Self::UnreadDefinition(_) => "unread-definition",
            Self::Unreadable(_) => "unreadable-document",
            Self::BlankFleet => "blank-fleet",
        }
    }
}

fn list(ids: &[Id]) -> String {
    ids.iter().map(Id::as_str).collect::<Vec<_>>().join(", ")
}

impl Cluster {
    /// Why patches of a definition have no meaning.
    fn refused(&self, id: &Id) -> Refusal {
        match self.patches_of(id.as_str()).and_then(|patches| patches.refused.as_deref()) {
            Some(error) => Refusal::Patch { id: id.clone(), error: error.clone() },
            None => SnapshotError::unreadable(&self.document, format!("the patches of \"{id}\" are lost")).into(),
        }
    }
}

impl Snapshot {
    /// All inputs of a type for a cluster, in the order of its references.
    ///
    /// A reference whose definition is missing is passed over, as the contract says; such gaps are
    /// [problems](crate::Problem) and cannot be made through the API.
    pub fn inputs(&self, cluster: &Cluster, ty: &ResourceType, empty: Empty) -> Result<Answer, Refusal> {
        cluster.fetch(ty);
        let each = self.catalogue(ty).map_or(0, Catalogue::mean_len) + cluster.ending().len() + FRAME;
        let patches = if ty.patchable { cluster.served_len() } else { 0 };
        let mut list = List::with_capacity(cluster.list(ty.position).len() * each + patches);
        self.each_input(cluster, ty, |_, input| list.push(|text| input.write(text)))?;
        list.seal(empty, cluster.ending())
    }

    /// What the answer is made of: as long as this stays the same, so does the answer.
    #[must_use]
    pub fn stamp(&self, cluster: &Cluster, ty: &ResourceType) -> Stamp {
        Stamp { cluster: cluster.version, catalogue: self.catalogue(ty).map(|catalogue| catalogue.version) }
    }

    /// The JSON text of each input of a type for a cluster.
    pub(crate) fn input_texts(&self, cluster: &Cluster, ty: &ResourceType) -> Result<BTreeMap<Id, String>, Refusal> {
        let mut texts = BTreeMap::new();
        self.each_input(cluster, ty, |id, input| {
            let mut text = String::new();
            input.write(&mut text);
            texts.insert(id.clone(), text);
        })?;
        Ok(texts)
    }

    /// Puts the inputs of a live cluster together, one after the other.
    fn each_input<'a>(
        &'a self,
        cluster: &'a Cluster,
        ty: &'a ResourceType,
        mut take: impl FnMut(&'a Id, Input<'_>),
    ) -> Result<(), Refusal> {
        if !cluster.is_live() {
            return Ok(());
        }
        if let Some(twice) = cluster.twice(ty.position).and_then(|place| self.catalogue(ty)?.at(place)) {
            return Err(Refusal::DuplicateInput(twice.id.to_string()));
        }
        let count = cluster.list(ty.position).len();
        // A type file whose `list` or `kind` was renamed makes lists look empty and definitions look gone. Nothing that
        // could be such a mistake is served.
        if count == 0
            && let Some(list) = cluster.unread_lists().first()
        {
            return Err(Refusal::UnreadList(list.clone()));
        }
        let circular = self.catalogue(ty).is_some_and(|catalogue| catalogue.circular);
        let order = ty.ordered_by.as_ref().map(|_| Order { fleet: self, cluster, ty, circular });
        let mut seen = 0;
        for (id, beside, definition) in self.references(cluster, ty) {
            seen += 1;
            let Some(definition) = definition else {
                if self.is_stranger(id) {
                    return Err(Refusal::UnreadDefinition(id.clone()));
                }
                continue;
            };
            if beside.patches == Some("") {
                return Err(cluster.refused(id));
            }
            let said = beside.fields.map(serde_json::from_str).transpose();
            let said = said.map_err(|error| SnapshotError::unreadable(&cluster.document, error.to_string()))?;
            take(id, Input { ty, definition, said, patches: beside.patches, order: order.as_ref(), cluster });
        }
        if seen != count {
            let lost = SnapshotError::unreadable(&cluster.document, "a reference is to a place of nothing".to_owned());
            return Err(lost.into());
        }
        Ok(())
    }

    /// The live clusters themselves as inputs, for whoever provisions them.
    pub fn cluster_inputs(&self, ty: &ResourceType, empty: Empty) -> Result<Answer, Refusal> {
        if self.clusters().next().is_none() {
            return Err(Refusal::BlankFleet);
        }
        let mut list = List::with_capacity(0);
        for cluster in self.clusters().filter(|cluster| cluster.is_live()) {
            // A cluster is a definition too: of itself.
            let itself = Definition::read(cluster.document.clone(), ty)?;
            list.push(|text| {
                text.push_str(&itself.plain);
                text.push('}');
            });
        }
        list.seal(empty, "}")
    }
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    cluster: Version,
    catalogue: Option<Version>,
}

/// What an input has around its texts, at most as a rule.
const FRAME: usize = 96;

/// One input, as what it is put together from.
struct Input<'a> {
    ty: &'a ResourceType,
    definition: &'a Definition,
    said: Option<Members<'a>>,
    patches: Option<&'a str>,
    order: Option<&'a Order<'a>>,
    cluster: &'a Cluster,
}

impl Input<'_> {
    fn write(&self, text: &mut String) {
        if self.said.is_none() && self.patches.is_none() && self.definition.depends_on.is_empty() {
            text.push_str(&self.definition.plain);
        } else {
            self.write_own(text);
        }
        text.push_str(self.cluster.ending());
    }

    /// Writes what only this cluster has.
    fn write_own(&self, text: &mut String) {
        match &self.said {
            None => text.push_str(self.definition.own()),
            Some(said) => {
                text.push('{');
                self.definition.shape.write(text, said);
            }
        }
        text.push_str(self.patches.unwrap_or(unpatched(self.ty)));
        if let Some(order) = self.order {
            text.push_str(",\"effective_depends_on\":[");
            for (at, id) in order.dependencies(self.definition).enumerate() {
                // Ids of the fleet hold nothing that JSON would escape.
                text.push_str(if at == 0 { "\"" } else { ",\"" });
                text.push_str(id);
                text.push('"');
            }
            text.push(']');
        }
    }
}
