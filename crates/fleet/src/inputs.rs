//! The answer to a poll: all inputs of one type for one cluster, whole and checked, or a refusal.

use std::collections::BTreeSet;

use model::{Id, Map, ResourceType, Value, helm};
use serde_json::json;

use crate::{Cluster, Definition, Snapshot, SnapshotError, merge::merge, order::Order};

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
        let identity = Value::Object(cluster.identity.clone());
        Answer::of(self.resolve(cluster, ty)?, empty, Some(identity))
    }

    /// The inputs as values, before they are checked and written down.
    pub(crate) fn resolve(&self, cluster: &Cluster, ty: &ResourceType) -> Result<Vec<Map>, Refusal> {
        if !cluster.is_live() {
            return Ok(Vec::new());
        }
        self.refuse_unread(cluster, ty)?;
        let identity = Value::Object(cluster.identity.clone());
        let resolved: Vec<_> = cluster
            .references(ty.position)
            .iter()
            .filter_map(|reference| Some((reference, self.definition(ty, &reference.id)?)))
            .collect();
        let order = ty.ordered_by.as_ref().map(|_| Order::among(ty, &resolved));
        let mut inputs = Vec::with_capacity(resolved.len());
        for (reference, definition) in &resolved {
            let mut input = merge(ty, &reference.id, &[&ty.defaults, &definition.fields, &reference.fields]);
            if ty.patchable {
                add_patches(&mut input, cluster, &reference.id)?;
            }
            if let Some(order) = &order {
                input.insert("effective_depends_on".to_owned(), json!(order.dependencies(reference.id.as_str())));
            }
            input.insert("cluster".to_owned(), identity.clone());
            inputs.push(input);
        }
        Ok(inputs)
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
        let lost = |id: &Id| self.definition(ty, id).is_none() && self.is_stranger(id);
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
        let mut inputs = Vec::new();
        for cluster in self.clusters().filter(|cluster| cluster.is_live()) {
            // A cluster is a definition too: of itself.
            let itself = Definition::read(cluster.document.clone(), ty)?;
            inputs.push(merge(ty, cluster.id(), &[&itself.fields]));
        }
        Answer::of(inputs, empty, None)
    }
}

/// The flat patches as they are, and the tree of typed values that they describe.
fn add_patches(input: &mut Map, cluster: &Cluster, id: &Id) -> Result<(), Refusal> {
    let patches = cluster.patches.get(id.as_str()).and_then(Value::as_object).cloned().unwrap_or_default();
    let values = helm::expand(&patches).map_err(|error| Refusal::Patch { id: id.clone(), error })?;
    input.insert("patches".to_owned(), Value::Object(patches));
    input.insert("values".to_owned(), Value::Object(values));
    Ok(())
}

impl Answer {
    /// Checks inputs against what Flux takes and writes them down.
    fn of(mut inputs: Vec<Map>, empty: Empty, cluster: Option<Value>) -> Result<Self, Refusal> {
        if inputs.is_empty() && empty == Empty::Explicit {
            let mut none = Map::new();
            none.insert("id".to_owned(), json!(Id::NONE));
            none.insert("none".to_owned(), json!(true));
            none.extend(cluster.map(|cluster| ("cluster".to_owned(), cluster)));
            inputs.push(none);
        }
        if inputs.len() > MAX_INPUTS {
            return Err(Refusal::TooManyInputs(inputs.len()));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = inputs.iter().filter_map(|input| input["id"].as_str()).find(|id| !seen.insert(*id)) {
            return Err(Refusal::DuplicateInput(twice.to_owned()));
        }
        let body = json!({ "inputs": inputs }).to_string().into_bytes();
        if body.len() > MAX_BYTES {
            return Err(Refusal::TooLarge(body.len()));
        }
        Ok(Self { body })
    }
}
