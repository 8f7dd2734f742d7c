//! Probes.

use model::{Epoch, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ChangeLogStatus;

/// The process is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// Polls can be answered, and from a snapshot of which revision and age.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ready")]
pub struct Readiness {
    /// `ok`.
    pub status: String,
    /// The server's version.
    #[serde(default)]
    pub version: String,
    /// The revision of the served snapshot.
    pub revision: Revision,
    /// The epoch of the change log; absent in epoch 0.
    #[serde(default, skip_serializing_if = "Epoch::is_first")]
    pub epoch: Epoch,
    /// Seconds since the served snapshot was last known to be at the head of the change log.
    pub age_seconds: f64,
    /// Whether the server follows the change log.
    pub store: ChangeLogStatus,
    /// Paths that are not served, because this server's files of their types differ from the change log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types_changed: Vec<String>,
}
