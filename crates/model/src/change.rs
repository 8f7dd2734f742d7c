//! Changes: what the log is made of.

use jiff::Timestamp;

use crate::{Body, Document, Id, Kind, Revision, State};

/// An atomic set of writes: all of it happens, as one revision, or none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number, one more than that of the change before it.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it: the name of a token, or of the part of the system that acts by itself.
    pub actor: String,
    /// Why, if they said so.
    pub reason: Option<String>,
    /// The request that made it, if one did.
    pub request_id: Option<String>,
    /// What it writes; at most one write for each document.
    pub writes: Vec<Write>,
}

/// One document's part in a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The resource type.
    pub kind: Kind,
    /// The id within the type.
    pub id: Id,
    /// What happens to the document.
    pub op: Op,
}

impl Write {
    /// The document that this write leaves behind at a revision; none if it removes it.
    #[must_use]
    pub fn document(&self, revision: Revision) -> Option<Document> {
        let (state, body) = match &self.op {
            Op::Put(body) => (State::Live, body),
            Op::Retire(body) => (State::Retired, body),
            Op::Remove => return None,
        };
        Some(Document { kind: self.kind.clone(), id: self.id.clone(), revision, state, body: body.clone() })
    }
}

impl Op {
    /// Its stable name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Put(_) => "put",
            Self::Retire(_) => "retire",
            Self::Remove => "remove",
        }
    }

    /// What it makes the document say.
    #[must_use]
    pub fn body(&self) -> Option<&Body> {
        match self {
            Self::Put(body) | Self::Retire(body) => Some(body),
            Self::Remove => None,
        }
    }
}

/// What a write does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The document is in force and says this.
    Put(Body),
    /// The document becomes a tombstone that says this: what the document said last.
    Retire(Body),
    /// The document, or its tombstone, is gone.
    Remove,
}
