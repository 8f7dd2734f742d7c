//! Changes: what the log is made of.

use jiff::Timestamp;

use crate::{Body, Digest, Document, Epoch, Id, Kind, Point, Revision, State, history};

/// An atomic set of writes: all of it happens, as one revision, or none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number, one more than that of the change before it.
    pub revision: Revision,
    /// Under which word of an operator it was made.
    pub epoch: Epoch,
    /// For an operator's word: what it overrules. Whoever is there turns to this log.
    pub overrules: Option<Digest>,
    /// The digest of the change before it.
    pub parent: Digest,
    /// Its own: of its parent, and of everything below.
    pub digest: Digest,
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

/// Where a change comes from; the fields are those of [`Change`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "said there")]
pub struct Origin {
    pub at: Timestamp,
    pub actor: String,
    pub reason: Option<String>,
    pub request_id: Option<String>,
}

impl Change {
    /// The change that follows on a point of the log.
    #[must_use]
    pub fn after(point: &Point, origin: Origin, writes: Vec<Write>) -> Self {
        Self::sealed(point, point.epoch, None, origin, writes)
    }

    /// An operator's word that the log is to be followed from here, by whoever is at `served`.
    #[must_use]
    pub fn accepting(head: &Point, served: &Digest, origin: Origin) -> Self {
        Self::sealed(head, head.epoch.next(), Some(*served), origin, Vec::new())
    }

    fn sealed(point: &Point, epoch: Epoch, overrules: Option<Digest>, origin: Origin, writes: Vec<Write>) -> Self {
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

    /// Whether it is what it was when it was made.
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
