//! The answer to a poll: all inputs of one type for one cluster, whole and checked, or a refusal.
//!
//! A poll gathers text. What does not depend on the poll was written down when its document was read: the plain input
//! of each definition, the patches and the identity of each cluster. Only a reference that overrides something is merged
//! anew.

use std::{borrow::Cow, collections::BTreeMap};

use model::{Id, ResourceType, helm};

use crate::{
    Cluster, Definition, Snapshot, SnapshotError,
    merge::{members, merge},
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

/// A body that may be sent with status 200.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// `{"inputs":[…]}`
    pub body: Vec<u8>,
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

impl Snapshot {
    /// All inputs of a type for a cluster, in the order of its references.
    ///
    /// A reference whose definition is missing is passed over, as the contract says; such gaps are
    /// [problems](crate::Problem) and cannot be made through the API.
    pub fn inputs(&self, cluster: &Cluster, ty: &ResourceType, empty: Empty) -> Result<Answer, Refusal> {
        let mut list = List::default();
        self.each_input(cluster, ty, |_, input| list.push(|text| input.write(text)))?;
        list.seal(empty, Some(&cluster.identity))
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

    fn each_input<'a>(
        &'a self,
        cluster: &'a Cluster,
        ty: &ResourceType,
        mut take: impl FnMut(&'a Id, Input<'a>),
    ) -> Result<(), Refusal> {
        if !cluster.is_live() {
            return Ok(());
        }
        self.refuse_unread(cluster, ty)?;
        if let Some(twice) = cluster.twice(ty.position) {
            return Err(Refusal::DuplicateInput(twice.to_string()));
        }
        let resolved: Vec<_> = cluster
            .references(ty.position)
            .iter()
            .filter_map(|reference| Some((reference, self.definition(ty, &reference.id)?)))
            .collect();
        let order = ty.ordered_by.as_ref().map(|_| Order::among(&resolved));
        for (reference, definition) in resolved {
            let id = reference.id.as_str();
            let merged = match &reference.fields {
                None => Cow::Borrowed(&*definition.plain),
                Some(fields) => members(merge(ty, &reference.id, &[&ty.defaults, &definition.fields, fields])).into(),
            };
            let patches = match cluster.patches.get(id).filter(|_| ty.patchable).map(|patches| &patches.members) {
                None => ty.patchable.then_some("\"patches\":{},\"values\":{}"),
                Some(Ok(members)) => Some(&**members),
                Some(Err(error)) => return Err(Refusal::Patch { id: reference.id.clone(), error: error.clone() }),
            };
            let dependencies = order.as_ref().map(|order| order.dependencies(id));
            take(&reference.id, Input { merged, patches, dependencies, cluster: &cluster.identity });
        }
        Ok(())
    }

    /// A type file whose `list` or `kind` was renamed makes lists look empty and definitions look gone. Nothing that
    /// could be such a mistake is served.
    fn refuse_unread(&self, cluster: &Cluster, ty: &ResourceType) -> Result<(), Refusal> {
        let references = cluster.references(ty.position);
        if references.is_empty()
            && let Some(list) = cluster.unread_lists.first()
        {
            return Err(Refusal::UnreadList(list.to_string()));
        }
        let lost = |id: &Id| self.is_stranger(id) && self.definition(ty, id).is_none();
        match references.iter().find(|reference| lost(&reference.id)) {
            Some(reference) => Err(Refusal::UnreadDefinition(reference.id.clone())),
            None => Ok(()),
        }
    }

    /// The live clusters themselves as inputs, for whoever provisions them.
    pub fn cluster_inputs(&self, ty: &ResourceType, empty: Empty) -> Result<Answer, Refusal> {
        if self.clusters().next().is_none() {
            return Err(Refusal::BlankFleet);
        }
        let mut list = List::default();
        for cluster in self.clusters().filter(|cluster| cluster.is_live()) {
            // A cluster is a definition too: of itself.
            let itself = Definition::read(cluster.document.clone(), ty)?;
            list.push(|text| {
                text.push('{');
                text.push_str(&itself.plain);
                text.push('}');
            });
        }
        list.seal(empty, None)
    }
}

/// One input, as the texts that it is put together from. All but the merged fields of a reference that overrides
/// something were written down when their documents were read.
struct Input<'a> {
    merged: Cow<'a, str>,
    patches: Option<&'a str>,
    dependencies: Option<Vec<&'a str>>,
    cluster: &'a str,
}

impl Input<'_> {
    fn write(&self, text: &mut String) {
        text.push('{');
        text.push_str(&self.merged);
        if let Some(patches) = self.patches {
            text.push(',');
            text.push_str(patches);
        }
        if let Some(dependencies) = &self.dependencies {
            text.push_str(",\"effective_depends_on\":[");
            for (at, id) in dependencies.iter().enumerate() {
                // Ids of the fleet hold nothing that JSON would escape.
                text.push_str(if at == 0 { "\"" } else { ",\"" });
                text.push_str(id);
                text.push('"');
            }
            text.push(']');
        }
        text.push_str(",\"cluster\":");
        text.push_str(self.cluster);
        text.push('}');
    }
}

/// An answer in the making.
struct List {
    text: String,
    count: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { text: "{\"inputs\":[".to_owned(), count: 0 }
    }
}

impl List {
    fn push(&mut self, write: impl FnOnce(&mut String)) {
        if self.count > 0 {
            self.text.push(',');
        }
        self.count += 1;
        write(&mut self.text);
    }

    /// Checks the whole against what Flux takes.
    fn seal(mut self, empty: Empty, cluster: Option<&str>) -> Result<Answer, Refusal> {
        if self.count == 0 && empty == Empty::Explicit {
            self.push(|text| {
                text.push_str("{\"id\":\"none\",\"none\":true");
                if let Some(cluster) = cluster {
                    text.push_str(",\"cluster\":");
                    text.push_str(cluster);
                }
                text.push('}');
            });
        }
        self.text.push_str("]}");
        if self.count > MAX_INPUTS {
            return Err(Refusal::TooManyInputs(self.count));
        }
        if self.text.len() > MAX_BYTES {
            return Err(Refusal::TooLarge(self.text.len()));
        }
        Ok(Answer { body: self.text.into_bytes() })
    }
}
