//! What the server says, as it says it.

use std::collections::BTreeMap;

use model::{Digest, Epoch, Map, Plan, Point, TypeChange, Value};
use serde::{Deserialize, Serialize};

/// A document and its ETag.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What it says.
    pub body: Map,
    /// To be given back where nobody else may have changed it.
    pub etag: String,
}

/// What came of a change.
#[derive(Clone, Debug)]
pub struct Made {
    /// The revision of the change or, where there was nothing to do, of the picture.
    pub revision: u64,
    /// The answer: the document, or what was written.
    pub body: Value,
}

/// What a change to many documents has written.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Written {
    /// The revision.
    pub revision: u64,
    /// The documents.
    pub documents: Vec<Write>,
}

/// A document that was written.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Write {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// `put`, `retire` or `remove`.
    pub op: String,
}

/// Who made a change, when and why.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Heading {
    /// Its number.
    pub revision: u64,
    /// When, in RFC 3339.
    pub at: String,
    /// Who.
    pub actor: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A change of the log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Change {
    /// Who, when and why.
    #[serde(flatten)]
    pub heading: Heading,
    /// What was written; of a large change the first documents.
    pub writes: Vec<Write>,
    /// How many documents were written, where not all of them are in `writes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// A change with its documents.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ChangeWithDocuments {
    /// Who, when and why.
    #[serde(flatten)]
    pub heading: Heading,
    /// What was written.
    pub writes: Vec<WriteWithDocuments>,
}

/// A document before and after a change.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WriteWithDocuments {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// `put`, `retire` or `remove`.
    pub op: String,
    /// What it said before, if it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it said after, if it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A change in the life of a document.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct HistoryEntry {
    /// Who, when and why.
    #[serde(flatten)]
    pub heading: Heading,
    /// `put`, `retire` or `remove`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// What it said then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// What is wrong with a document.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DocumentProblem {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Where in it, as a JSON pointer.
    pub pointer: String,
    /// The rule's stable name.
    pub rule: String,
    /// A sentence.
    pub message: String,
}

/// How many problems stored documents have.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ProblemCounts {
    /// In all.
    pub total: u64,
    /// By the rule's stable name.
    pub rules: BTreeMap<String, u64>,
}

/// Whether polls can be answered.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Ready {
    /// `ok`.
    pub status: String,
    /// The server's version.
    #[serde(default)]
    pub version: String,
    /// The revision of the picture.
    pub revision: u64,
    /// The epoch of the change log.
    #[serde(default, skip_serializing_if = "Epoch::is_first")]
    pub epoch: Epoch,
    /// Time since the picture was last known to be at the head of the log.
    pub age_seconds: f64,
    /// How it stands with the log.
    pub store: String,
}

/// Where a server's files and the change log differ on how resource types are served, and what clusters would lose.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TypeChanges {
    /// The revision on which the plan was made.
    pub revision: u64,
    /// The epoch of the change log.
    #[serde(default, skip_serializing_if = "Epoch::is_first")]
    pub epoch: Epoch,
    /// Stands for the types that differ.
    pub digest: Digest,
    /// The types that differ.
    pub changes: Vec<TypeChange>,
    /// What accepting the files would do.
    pub plan: Plan,
}

/// What is served, and what the log says.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Store {
    /// `following`, `starting`, `unavailable` or `diverged`.
    pub status: String,
    /// Time since the picture was last known to be at the head of the log.
    pub age_seconds: f64,
    /// Where the picture is.
    pub picture: Point,
    /// Where the log is; none where it cannot be read.
    pub log: Option<Point>,
}
