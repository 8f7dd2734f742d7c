//! Changes of several documents: a batch, its result, and the target of a revert.

use model::{MAX_SAFE_INTEGER, Map, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::WriteSummary;

/// Many writes, one change, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = Self::example())]
pub struct Batch {
    /// Each sees the result of those before it.
    pub writes: Vec<BatchWrite>,
}

impl Batch {
    fn example() -> Value {
        json!({"writes": [
            {"op": "create", "kind": "namespace", "body": {"id": "team-sandbox", "labels": {"team": "sandbox"}}},
            {"op": "assign", "cluster": "demo-cluster-01", "kind": "namespace", "id": "team-sandbox"}
        ]})
    }
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum BatchWrite {
    /// Creates a document.
    Create {
        /// Its kind.
        kind: String,
        /// The document.
        body: Map,
    },
    /// Creates or replaces a document.
    Put {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// The whole document.
        body: Map,
    },
    /// Changes a document by a strategic merge patch.
    Patch {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// The patch.
        body: Map,
    },
    /// Removes a definition, or decommissions a cluster.
    Delete {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// Whether the references to it are removed too.
        #[serde(default)]
        cascade: bool,
    },
    /// Restores a decommissioned cluster.
    Restore {
        /// The cluster.
        id: String,
    },
    /// Removes a decommissioned cluster for good.
    Purge {
        /// The cluster.
        id: String,
    },
    /// Adds a reference to a cluster, or replaces its overrides.
    Assign {
        /// The cluster.
        cluster: String,
        /// The kind of the definition.
        kind: String,
        /// The id of the definition.
        id: String,
        /// The overrides of the reference.
        #[serde(default)]
        body: Map,
    },
    /// Removes a reference from a cluster.
    Unassign {
        /// The cluster.
        cluster: String,
        /// The kind of the definition.
        kind: String,
        /// The id of the definition.
        id: String,
    },
}

/// What a change of many documents wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Written")]
pub struct WrittenChange {
    /// The revision of the change or, where there was nothing to do, of the fleet.
    pub revision: Revision,
    /// The documents that were written.
    pub documents: Vec<WriteSummary>,
}

/// To which revision a document goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct RevertTarget {
    /// The revision.
    #[schemars(range(max = MAX_SAFE_INTEGER))]
    pub revision: u64,
}
