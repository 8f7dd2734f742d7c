//! Changes of the change log: in lists and streams, one with its documents, and the history of one document.
//!
//! The type of a document's JSON is a parameter: the server writes stored text as it is (`Box<RawValue>`), and clients read it parsed.

use jiff::Timestamp;
use model::{Change, Digest, Epoch, Id, Kind, Map, Revision, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who made a change, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeHeading {
    /// The number of the change.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it: the name of a token, or of the part of the server that acts by itself.
    pub actor: String,
    /// Where the change accepts a change log that diverged: the digest of the history that it overrules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrules: Option<Digest>,
    /// Why, if a reason was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the request that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl From<&Change> for ChangeHeading {
    fn from(change: &Change) -> Self {
        Self {
            revision: change.revision,
            at: change.at,
            actor: change.actor.clone(),
            overrules: change.overrules,
            reason: change.reason.clone(),
            request_id: change.request_id.clone(),
        }
    }
}

/// A change in the audit trail, without the content of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct ChangeSummary {
    #[expect(missing_docs, reason = "described there")]
    #[serde(flatten)]
    pub heading: ChangeHeading,
    /// The documents that it wrote; of a large change the first ones.
    pub writes: Vec<WriteSummary>,
    /// How many documents it wrote, where not all of them are in writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// A document that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteSummary {
    /// The document's kind.
    pub kind: Kind,
    /// The document's id.
    pub id: Id,
    /// What happened to it.
    #[schemars(extend("enum" = ["put", "retire", "remove"]))]
    pub op: String,
}

/// A change with every document before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChangeWithDocuments")]
pub struct ChangeDetails<D = Value> {
    #[expect(missing_docs, reason = "described there")]
    #[serde(flatten)]
    pub heading: ChangeHeading,
    /// How often an operator had accepted another history before.
    pub epoch: Epoch,
    /// The digest of the change before it.
    pub parent: Digest,
    /// The digest of the change, and of everything before it.
    pub digest: Digest,
    /// The documents that it wrote.
    pub writes: Vec<WriteDetails<D>>,
}

/// A document before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WriteDetails")]
pub struct WriteDetails<D = Value> {
    /// The document's kind.
    pub kind: Kind,
    /// The document's id.
    pub id: Id,
    /// What happened to it.
    #[schemars(extend("enum" = ["put", "retire", "remove"]))]
    pub op: String,
    /// The document before, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map>")]
    pub before: Option<D>,
    /// The document after, if there is one; of one that is decommissioned what it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map>")]
    pub after: Option<D>,
}

/// A change of one document, with the document after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HistoryEntry")]
pub struct HistoryEntry<D = Value> {
    #[expect(missing_docs, reason = "described there")]
    #[serde(flatten)]
    pub heading: ChangeHeading,
    /// What happened to the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["put", "retire", "remove"]))]
    pub op: Option<String>,
    /// The document after the change, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map>")]
    pub body: Option<D>,
}
