//! Where a server's files and the change log differ on how resource types are served.

use model::{Digest, Epoch, Plan, TypeChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a server's files and the change log differ on how resource types are served, and what accepting the files would do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TypeChanges {
    /// The revision of the plan, for `expected_revision`.
    pub revision: u64,
    /// The epoch of the change log, for `expected_epoch`; absent in epoch 0.
    #[serde(default, skip_serializing_if = "Epoch::is_first")]
    pub epoch: Epoch,
    /// The digest of the changes, for `expected_changes`.
    pub digest: Digest,
    /// The types that differ.
    pub changes: Vec<TypeChange>,
    /// What accepting the files would do.
    pub plan: Plan,
}
