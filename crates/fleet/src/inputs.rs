//! The answer to a poll: all inputs of one type for one cluster, whole and checked, or a refusal.
//!
//! A poll gathers text. What does not depend on the poll was written down when its document was read: the plain input
//! of each definition, the patches and the identity of each cluster. Only a reference that overrides something is merged
//! anew, of texts too. References hold slots of the catalogue, so no name is compared; the answer is written once.

use std::collections::BTreeMap;

use model::{Id, Kind, ResourceType, helm};

use crate::{
    Answer, Cluster, Definition, Snapshot, SnapshotError,
    answer::AnswerBuilder,
    catalogue::{Catalogue, Version},
    definition::unpatched,
    merge::{Field, Layout, Source, merge, read_fields},
    order::Order,
};

/// The largest answer that Flux Operator reads. It keeps everything when an answer is larger, so does this server.
pub const MAX_BYTES: usize = 921_600;

/// The highest limit of inputs that a provider can be configured with; it drops the rest silently.
pub const MAX_INPUTS: usize = 10_000;

/// How "no inputs" is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// As an empty list.
    Bare,
    /// As one record with `none: true`, for cluster sides on which an absence never deletes.
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
    /// A definition is missing, and a document of another kind has its id: the type's kind may have been renamed.
    #[error(
        "\"{id}\" is not defined as {kind}, but a document of kind {other} has this id: the type's kind may have changed"
    )]
    UnreadDefinition {
        /// What is referred to.
        id: Id,
        /// As which kind.
        kind: Kind,
        /// The kind under which it is there.
        other: Kind,
    },
    /// The list has references, and none of them is defined.
    #[error(
        "none of the {count} references in the cluster's list \"{list}\" is defined, so an empty list may be a mistake"
    )]
    NoDefinitions {
        /// The list.
        list: String,
        /// How many references it has.
        count: usize,
    },
    /// The file of the type declares another kind, list, path, key, field, nest or default than the change log records.
    #[error(
        "this server's file of the type \"{0}\" declares another kind, list, path, key, field, nest or default than the change log \
         records, or one that another type had"
    )]
    TypesChanged(Kind),
    /// A document cannot be read.
    #[error(transparent)]
    Unreadable(#[from] SnapshotError),
    /// The fleet knows no cluster, not even a decommissioned one: a blank store, not an empty fleet.
    #[error("the fleet knows no cluster, not even a decommissioned one")]
    BlankFleet,
    /// A part of the list of clusters in which none is, and none was.
    #[error(
        "no cluster, in force or decommissioned, is in the part of the fleet that environment, label and shard select, so an \
         empty list may be a mistake"
    )]
    NoMatchingCluster,
    /// A part of the list of clusters in which all are decommissioned. Only a shard can answer so, by the explicit record: from
    /// an environment or a label, a running cluster may have moved away.
    #[error(
        "all clusters in the part of the fleet that environment, label and shard select are decommissioned, or have moved away; \
         no empty list is sent for a part, and only an empty shard can be answered with empty=explicit"
    )]
    NoClusterInForce,
    /// The list of clusters is larger than Flux takes.
    #[error(
        "the list of clusters is larger than the {MAX_BYTES} bytes and {MAX_INPUTS} inputs that Flux takes; ask for it in \
         parts, such as shard=1/{0}, or by environment or label"
    )]
    TooManyClusters(u32),
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
            Self::TooLarge(_) | Self::TooManyClusters(_) => "answer-too-large",
            Self::UnreadList(_) => "unread-list",
            Self::UnreadDefinition { .. } => "unread-definition",
            Self::NoDefinitions { .. } => "no-definitions",
            Self::TypesChanged(_) => "types-changed",
            Self::Unreadable(_) => "unreadable-document",
            Self::BlankFleet => "blank-fleet",
            Self::NoMatchingCluster => "no-matching-cluster",
            Self::NoClusterInForce => "no-cluster-in-force",
        }
    }
}

fn list(ids: &[Id]) -> String {
    ids.iter().map(Id::as_str).collect::<Vec<_>>().join(", ")
}

impl Snapshot {
    /// All inputs of a type for a cluster, in the order of its references.
    ///
    /// A reference whose definition is missing is left out, as the contract requires; such gaps are
    /// [problems](crate::Problem) and cannot be made through the API. A list of references that yields no input at all is
    /// refused: Flux would delete everything for what is most likely a fault.
    pub fn inputs(&self, cluster: &Cluster, ty: &ResourceType, empty: Empty) -> Result<Answer, Refusal> {
        if ty.patchable {
            cluster.prefetch();
        }
        let each = self.catalogue(ty).map_or(0, Catalogue::mean_len) + cluster.ending().len() + FRAME;
        let mut list = AnswerBuilder::with_capacity(cluster.references(ty.position).len() * each);
        self.each_input(cluster, ty, |_, input| list.push(|text| input.write(text)))?;
        list.seal(empty, cluster.ending())
    }

    /// What the answer is made of: as long as this stays the same, so does the answer.
    ///
    /// A cluster's version stands for its document: its identity, lists, overrides and patches, and whether it is in force. The
    /// version of the type's definitions stands for them, for their order, and for all that lets this server refuse them: the
    /// record of the type, and documents of other kinds. No two readings of anything have one version, so a snapshot that was
    /// loaded anew shares none with the one that it replaces.
    #[must_use]
    pub fn stamp(&self, cluster: &Cluster, ty: &ResourceType, empty: Empty) -> Stamp {
        Stamp { cluster: cluster.version, catalogue: self.catalogue(ty).map(|catalogue| catalogue.version), empty }
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

    /// A list of a cluster with references that may be those of a type whose own list is empty: one that no type reads. A type that
    /// is not served reads none, unless it is recorded to: then it is this server's file that is wrong.
    fn unread_list<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        let types = self.types();
        let unserved = self.registry().definitions().filter(|other| !types.serves(other.position));
        let mut taken =
            unserved.filter(|it| !cluster.references(it.position).is_empty() && !types.are_read_from(&it.list));
        let unread = cluster.unread_lists().first().map(String::as_str);
        unread.or_else(|| taken.next().map(|other| other.list.as_str()))
    }

    /// Assembles the inputs of a live cluster, one after the other.
    pub(crate) fn each_input<'a>(
        &'a self,
        cluster: &'a Cluster,
        ty: &'a ResourceType,
        mut take: impl FnMut(&'a Id, Input<'_>),
    ) -> Result<(), Refusal> {
        if !self.types().serves(ty.position) {
            return Err(Refusal::TypesChanged(ty.kind.clone()));
        }
        if !cluster.is_live() {
            return Ok(());
        }
        if let Some(duplicate) = cluster.duplicate(ty.position).and_then(|slot| self.catalogue(ty)?.at(slot)) {
            return Err(Refusal::DuplicateInput(duplicate.id.to_string()));
        }
        let count = cluster.references(ty.position).len();
        // A type file whose `list` or `kind` was renamed makes lists look empty and definitions look missing. Nothing that
        // could be such a mistake is served.
        if count == 0
            && let Some(list) = self.unread_list(cluster)
        {
            return Err(Refusal::UnreadList(list.to_owned()));
        }
        let catalogue = self.catalogue(ty);
        let defaults = catalogue.map_or(&[][..], Catalogue::defaults);
        let order = catalogue.filter(|_| ty.ordered_by.is_some()).map(|it| Order::new(it, cluster, ty));
        let (mut seen, mut defined) = (0, 0);
        for (id, reference, definition) in self.references(cluster, ty) {
            seen += 1;
            let Some(definition) = definition else {
                if let Some(other) = self.kind_elsewhere(ty, id) {
                    return Err(Refusal::UnreadDefinition {
                        id: id.clone(),
                        kind: ty.kind.clone(),
                        other: other.clone(),
                    });
                }
                continue;
            };
            defined += 1;
            let patches = cluster.patches_for(reference).map(|patches| cluster.members(patches)).transpose();
            let patches = patches.map_err(|error| Refusal::Patch { id: id.clone(), error: error.clone() })?;
            let overrides = cluster.fields_of(reference).map_or(Ok(Vec::new()), read_fields);
            let overrides =
                overrides.map_err(|error| SnapshotError::unreadable(&cluster.document, error.to_string()))?;
            take(id, Input { ty, defaults, definition, overrides, patches, order: order.as_ref(), cluster });
        }
        if seen != count {
            let lost = SnapshotError::unreadable(
                &cluster.document,
                "a reference leads to an empty slot of the catalogue".to_owned(),
            );
            return Err(lost.into());
        }
        if count > 0 && defined == 0 {
            return Err(Refusal::NoDefinitions { list: ty.list.clone(), count });
        }
        Ok(())
    }
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    cluster: Version,
    catalogue: Option<Version>,
    empty: Empty,
}

/// What an input has around its texts, at most as a rule.
const FRAME: usize = 96;

/// One input: the parts that it is assembled from.
pub(crate) struct Input<'a> {
    pub(crate) ty: &'a ResourceType,
    defaults: Source<'a>,
    pub(crate) definition: &'a Definition,
    /// What the cluster's reference sets.
    pub(crate) overrides: Vec<Field<'a>>,
    patches: Option<&'a str>,
    order: Option<&'a Order<'a>>,
    pub(crate) cluster: &'a Cluster,
}

impl Input<'_> {
    /// Where its fields come from, the weakest first.
    pub(crate) fn sources(&self) -> [Source<'_>; 3] {
        [self.defaults, &self.definition.fields, &self.overrides]
    }

    fn write(&self, text: &mut String) {
        if self.overrides.is_empty() && self.patches.is_none() && self.definition.depends_on.is_empty() {
            text.push_str(&self.definition.plain);
        } else {
            self.write_fields(text);
            self.write_additions(text);
        }
        text.push_str(self.cluster.ending());
    }

    /// Writes the fields that are merged.
    fn write_fields(&self, text: &mut String) {
        if self.overrides.is_empty() {
            text.push_str(self.definition.own());
        } else {
            text.push('{');
            Layout::new(self.ty, &merge(&self.sources())).write(&self.definition.document.id, text);
        }
    }

    /// Writes the members that come after the merged fields and depend on the cluster.
    fn write_additions(&self, text: &mut String) {
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

    /// The members of the input that no merge produces, as the JSON of an object.
    pub(crate) fn additions(&self) -> String {
        let mut text = String::new();
        self.write_additions(&mut text);
        // This ends the object, and what was written begins with a comma.
        text.push_str(self.cluster.ending());
        text.replace_range(..1, "{");
        text
    }
}
