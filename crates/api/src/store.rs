//! The served snapshot and the change log, and the acceptance of a change log that diverged.

use std::fmt;

use model::{Digest, Epoch, Point, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a server follows the change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ChangeLogStatus {
    /// The store is not opened yet.
    Starting,
    /// The served snapshot is at the head of the change log.
    Following,
    /// The store cannot be read.
    Unavailable,
    /// The change log does not continue the served snapshot, which is kept.
    Diverged,
}

impl fmt::Display for ChangeLogStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What is served, and where the change log ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Store")]
pub struct StoreState {
    /// Whether the server follows the change log.
    pub status: ChangeLogStatus,
    /// Seconds since the served snapshot was last known to be at the head of the change log.
    pub age_seconds: f64,
    /// The point of the served snapshot.
    pub picture: Point,
    /// Where the change log ends; null while it cannot be read.
    pub log: Option<Point>,
}

/// The change by which a change log that diverged was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Accepted")]
pub struct StoreAcceptance {
    /// The revision of the change.
    pub revision: Revision,
    /// Its epoch: how often an operator has accepted another history.
    pub epoch: Epoch,
    /// The digest of the served history that it overrules.
    pub overrules: Digest,
}
