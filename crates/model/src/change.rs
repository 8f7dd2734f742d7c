//! Changes: the entries of the change log.

use jiff::Timestamp;

use crate::{Body, Digest, Document, Epoch, Id, Kind, Point, Revision, State, history};

/// An atomic set of writes: all of it happens, as one revision, or none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number, one more than that of the change before it.
    pub revision: Revision,
    /// The epoch: how often an operator had accepted another history before it.
    pub epoch: Epoch,
    /// For an acceptance: the digest that it overrules. A server whose snapshot has this digest follows this log from here.
    pub overrules: Option<Digest>,
    /// The digest of the change before it.
    pub parent: Digest,
    /// Its own digest: of its parent and of all fields below.
    pub digest: Digest,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it: the name of a token, or of a part of the system.
    pub actor: String,
    /// The reason that the actor gave, if any.
    pub reason: Option<String>,
    /// The request that made it, if one did.
    pub request_id: Option<String>,
    /// Its writes; at most one for each document.
    pub writes: Vec<Write>,
}

/// The origin of a change; the fields are those of [`Change`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "documented on Change")]
pub struct Origin {
    pub at: Timestamp,
    pub actor: String,
    pub reason: Option<String>,
    pub request_id: Option<String>,
}

impl Change {
    /// The change that follows a point of the log.
    #[must_use]
    pub fn after(point: &Point, origin: Origin, writes: Vec<Write>) -> Self {
        Self::with_digest(point, point.epoch, None, origin, writes)
    }

    /// An operator's acceptance: servers whose snapshot has the digest `served` follow this log from here.
    #[must_use]
    pub fn accepting(head: &Point, served: &Digest, origin: Origin) -> Self {
        Self::with_digest(head, head.epoch.next(), Some(*served), origin, Vec::new())
    }

    fn with_digest(point: &Point, epoch: Epoch, overrules: Option<Digest>, origin: Origin, writes: Vec<Write>) -> Self {
        let Origin { at, actor, reason, request_id } = origin;
        let mut change = Self {
            revision: point.revision.next(),
            epoch,
            overrules,
            parent: point.digest,
            digest: Digest::default(),
            at,
            actor,
            reason,
            request_id,
            writes,
        };
        change.digest = history::digest(&change);
        change
    }

    /// Whether its digest is that of its content.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        history::digest(self) == self.digest
    }
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
    /// The document after this write at a revision; none if the write removes it.
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

    /// The content that it gives the document; none if it removes it.
    #[must_use]
    pub fn body(&self) -> Option<&Body> {
        match self {
            Self::Put(body) | Self::Retire(body) => Some(body),
            Self::Remove => None,
        }
    }
}

/// The operation of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The document is in force, with this content.
    Put(Body),
    /// The document becomes a tombstone, with its last content.
    Retire(Body),
    /// The document, or its tombstone, is removed.
    Remove,
}
