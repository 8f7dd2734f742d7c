//! Plans: what a change would do to documents and to the inputs of each cluster. The fleet computes them, the API serves them,
//! and clients read them.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Epoch, Id, Kind, Point, Value};

/// The effect of a change, computed before it is made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Always true: nothing was written.
    #[schemars(extend("enum" = [true]))]
    pub dry_run: bool,
    /// The revision on which the plan was made.
    pub revision: u64,
    /// The epoch of the change log, which is left out while it is the first.
    #[serde(default, skip_serializing_if = "Epoch::is_first")]
    pub epoch: Epoch,
    /// The documents that would be written.
    pub documents: Vec<DocumentPlan>,
    /// The clusters whose inputs would change.
    pub clusters: Vec<ClusterPlan>,
    /// How many clusters and inputs, by environment.
    pub totals: BTreeMap<String, Totals>,
    /// The inputs that the change would remove from protected clusters, if it is refused for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRemovals>,
}

/// Inputs that a change would remove from clusters with `deletion_protection`, more than its request allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedRemovals {
    /// The code with which the change would fail.
    pub code: Cow<'static, str>,
    /// A sentence, with the next step.
    pub detail: String,
    /// How many inputs: `allow_removals` with this number allows it.
    pub removed: usize,
    /// The first of the clusters.
    pub clusters: Vec<ProtectedCluster>,
}

/// What a protected cluster would lose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtectedCluster {
    /// The cluster.
    pub id: Id,
    /// How many inputs.
    pub removed: usize,
}

/// What would happen to a document.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DocumentPlan {
    /// The kind.
    pub kind: Kind,
    /// The id.
    pub id: Id,
    /// `put`, `retire` or `remove`.
    pub op: Cow<'static, str>,
    /// Every value that would change.
    pub diff: Vec<Difference>,
}

/// One value before and after; none where the value does not exist.
//
// JSON text: a plan of the whole fleet has lists of every cluster, and parsed they would take ten times the memory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// A JSON pointer.
    pub pointer: String,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<RawValue>>,
    /// The value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<RawValue>>,
}

impl Difference {
    /// The value at a pointer, before and after.
    #[must_use]
    pub fn new(pointer: &str, before: Option<&Value>, after: Option<&Value>) -> Self {
        // A JSON tree can always be written.
        let text = |value: Option<&Value>| value.and_then(|value| to_raw_value(value).ok());
        Self { pointer: pointer.to_owned(), before: text(before), after: text(after) }
    }
}

/// The changes of a cluster's inputs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPlan {
    /// The cluster.
    pub id: Id,
    /// Its environment.
    pub environment: String,
    /// By type.
    pub inputs: BTreeMap<String, InputPlan>,
}

/// The ids of inputs that would be added, changed or removed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct InputPlan {
    /// Flux would create the objects of these inputs.
    pub added: Vec<Id>,
    /// Flux would apply the objects of these inputs again; or the input is added or removed, but has no objects.
    pub changed: Vec<Id>,
    /// Flux would delete the objects of these inputs.
    pub removed: Vec<Id>,
}

/// Counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Clusters whose inputs would change.
    pub clusters: usize,
    /// Inputs that would be added.
    pub added: usize,
    /// Inputs that would change.
    pub changed: usize,
    /// Inputs that would be removed.
    pub removed: usize,
}

impl Plan {
    /// A plan on a point of the change log, without effects on clusters yet.
    #[must_use]
    pub fn new(point: &Point, documents: Vec<DocumentPlan>) -> Self {
        let (revision, epoch) = (point.revision.0, point.epoch);
        Self { dry_run: true, revision, epoch, documents, clusters: Vec::new(), totals: BTreeMap::new(), refused: None }
    }

    /// How many inputs would be removed, over all environments.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.totals.values().map(|totals| totals.removed).sum()
    }
}
