//! What a change would do, told before it is made: to documents, and to what each cluster gets. The fleet computes it,
//! the API serves it, and clients read it.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Epoch, Id, Kind, Point, Value};

/// A change, told before it is made.
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
    /// The clusters that would get something else.
    pub clusters: Vec<ClusterPlan>,
    /// How many clusters and inputs, by environment.
    pub totals: BTreeMap<String, Totals>,
    /// What the change would take from protected clusters, where it is refused for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRemovals>,
}

/// Inputs that a change would take from clusters with `deletion_protection`, more than its request allows.
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
    /// Every value that would be another.
    pub diff: Vec<Difference>,
}

/// One value before and after; one that is missing was not or would not be there.
//
// Kept as JSON text: a plan of the whole fleet has lists of every cluster, which take ten times the memory when parsed.
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
    /// What is at a pointer, before and after.
    #[must_use]
    pub fn new(pointer: &str, before: Option<&Value>, after: Option<&Value>) -> Self {
        // A tree of JSON can be written.
        let text = |value: Option<&Value>| value.and_then(|value| to_raw_value(value).ok());
        Self { pointer: pointer.to_owned(), before: text(before), after: text(after) }
    }
}

/// What a cluster would get differently.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPlan {
    /// The cluster.
    pub id: Id,
    /// Its environment.
    pub environment: String,
    /// By type.
    pub inputs: BTreeMap<String, InputPlan>,
}

/// The ids of inputs that would come, change or go.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct InputPlan {
    /// Flux would create what these render.
    pub added: Vec<Id>,
    /// Flux would apply what these render anew; or they come or go, and render nothing.
    pub changed: Vec<Id>,
    /// Flux would delete what these rendered.
    pub removed: Vec<Id>,
}

/// Counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Clusters that would get something else.
    pub clusters: usize,
    /// Inputs that would come.
    pub added: usize,
    /// Inputs that would change.
    pub changed: usize,
    /// Inputs that would go.
    pub removed: usize,
}

impl Plan {
    /// A plan on a point of the change log that does nothing to clusters yet.
    #[must_use]
    pub fn new(point: &Point, documents: Vec<DocumentPlan>) -> Self {
        let (revision, epoch) = (point.revision.0, point.epoch);
        Self { dry_run: true, revision, epoch, documents, clusters: Vec::new(), totals: BTreeMap::new(), refused: None }
    }

    /// How many inputs would go, over all environments.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.totals.values().map(|totals| totals.removed).sum()
    }
}
