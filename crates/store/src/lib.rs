//! What happened: the log of all changes, append-only and totally ordered. It is the only truth; the fleet is a
//! picture of it.
//!
//! A backend keeps a short promise, the [`Store`] trait, and the promise is a test suite (`tests/contract.rs`) that
//! runs on each of them. A store never guesses: what it cannot read whole it reports as an error, because whoever
//! reads from it decides what clusters delete.

#![allow(clippy::duplicate_mod, reason = "src/sql is one text for all databases, compiled for each")]

pub mod archive;
mod error;
mod memory;
mod pieces;
mod postgres;
pub mod seed;
mod sqlite;

use std::{slice, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Document, Id, Kind, Op, Point, Revision, StoreId, Write};

use pieces::Collection;

pub use error::{AppendError, RestoreError, StoreError};
pub use memory::MemoryStore;
pub use pieces::{Pieces, pieces};
pub use postgres::{PostgresDsn, PostgresStore, Timeouts};
pub use sqlite::{InvalidDsn, SqliteDsn, SqliteStore};

/// What to do where the tables of a database are not there, or not up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Make them.
    Made,
    /// Refuse.
    Found,
}

/// The state of all documents at the head of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Where in the history it was taken.
    pub point: Point,
    /// All documents and tombstones, ordered by kind and id.
    pub documents: Vec<Document>,
}

/// Where the log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// After this, everything is known.
    pub horizon: Point,
    /// The newest change.
    pub head: Point,
}

/// The end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where the log ends. *Before* what was asked for means that the log lost its end.
    pub head: Point,
    /// The changes that were asked for, in order and without a gap.
    pub changes: Vec<Change>,
}

impl Tail {
    /// Whether it continues the history that led to a point: the one after which it was asked for.
    #[must_use]
    pub fn continues(&self, point: &Point) -> bool {
        let before = self.changes.first().map_or(self.head.digest, |first| first.parent);
        self.head.store == point.store && before == point.digest
    }
}

/// A change as the audit trail lists it: who, when, why and what, without the bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The change, without its writes.
    pub change: Change,
    /// The first [`LISTED`] of the documents that it wrote: kind, id and the name of the operation.
    pub writes: Vec<(Kind, Id, String)>,
    /// How many documents it wrote.
    pub total: usize,
}

/// How many of the documents that a change wrote an entry names: a change of a whole fleet has tens of thousands.
pub const LISTED: usize = 50;

/// Documents of which kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Of all.
    All,
    /// Of this one.
    Only(Kind),
    /// Of all others.
    Except(Kind),
}

impl Kinds {
    /// Whether a kind is one of them.
    #[must_use]
    pub fn contain(&self, kind: &Kind) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => kind == only,
            Self::Except(except) => kind != except,
        }
    }
}

/// One write of a change, and what the document was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteAndBefore {
    /// The write.
    pub write: Write,
    /// The document before it; none if it was not there.
    pub before: Option<Op>,
}

/// Which entries of the audit trail are asked for.
#[derive(Clone, Debug, Default)]
pub struct EntryQuery {
    /// Only those that wrote a document of this kind.
    pub kind: Option<Kind>,
    /// Only those that wrote a document of this id.
    pub id: Option<Id>,
    /// Only those of this actor.
    pub actor: Option<String>,
    /// Only those made at or after this time.
    pub since: Option<Timestamp>,
    /// Only those made before this time.
    pub until: Option<Timestamp>,
    /// Only those before this revision: the last one of the page before.
    pub before: Option<Revision>,
    /// Only those after this revision.
    pub after: Option<Revision>,
    /// At most so many.
    pub limit: u32,
}

/// Changes on their way into a store, in order, each after the one before it.
pub type Changes<'a> = dyn Iterator<Item = Result<Change, RestoreError>> + Send + 'a;

/// Keeps the log.
///
/// Reads of the past (`documents_at`, `load_at`, `writes_of`, `document_at`, `entries`) have database connections of their own,
/// so that neither a follower nor a writer waits for one of them.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads all documents and tombstones at the head, from one consistent read, and hands them over in pieces, those of
    /// clusters last: they refer to the others. What was handed over is good once the point is answered, and not before.
    async fn read(&self, to: Pieces) -> Result<Point, StoreError>;

    /// The whole picture at the head.
    async fn load(&self) -> Result<Picture, StoreError> {
        let (to, collection) = Collection::begin();
        let point = self.read(to).await?;
        collection.picture(point).await
    }

    /// Where the log begins and ends.
    async fn ends(&self) -> Result<Ends, StoreError>;

    /// Appends changes, each of which follows on the one before it, if the first comes directly after the head and follows
    /// on what led to it: durably, and all of them whole; else fails with [`AppendError::Conflict`] and has done nothing.
    /// Compare-and-swap: of several writers of one revision, one wins. To make several changes durable takes hardly longer
    /// than to make one.
    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError>;

    /// Appends one change.
    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        self.append_all(slice::from_ref(change)).await
    }

    /// At most `limit` changes after a revision.
    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<Tail, StoreError>;

    /// The documents of some kinds as they were at a revision, tombstones included, ordered by kind and id.
    async fn documents_at(&self, revision: Revision, kinds: Kinds) -> Result<Picture, StoreError>;

    /// The whole picture as it was at a revision.
    async fn load_at(&self, revision: Revision) -> Result<Picture, StoreError> {
        self.documents_at(revision, Kinds::All).await
    }

    /// At most `limit` writes of a change, from a position on, in their order. None are left after the last.
    async fn writes_of(&self, revision: Revision, from: usize, limit: usize)
    -> Result<Vec<WriteAndBefore>, StoreError>;

    /// The last write to a document at or before a revision, and the revision that made it.
    async fn document_at(&self, kind: &Kind, id: &Id, revision: Revision)
    -> Result<Option<(Revision, Op)>, StoreError>;

    /// The changes that a query asks for, newest first.
    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError>;

    /// The digest of a change, as far as it is remembered: for longer than the change itself.
    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError>;

    /// Whether an operator's word overrules the history that led to a digest.
    async fn overrules(&self, point: &Digest) -> Result<bool, StoreError>;

    /// The first change that was made at or after a time.
    async fn first_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError>;

    /// Forgets the changes up to a revision and keeps the picture that they made: the past gets shorter, the present
    /// stays what it is. Reading what was forgotten is [`StoreError::Pruned`]. The newest change is always kept. Answers
    /// the horizon if there was something to forget.
    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError>;

    /// Puts a whole log back, all or nothing: a picture, and the changes after it. Refuses to do so over another log,
    /// unless that is to be replaced. Answers the head.
    async fn restore(&self, base: Picture, changes: &mut Changes<'_>, replace: bool) -> Result<Point, RestoreError>;

    /// Returns when somebody else may have written to the log: at once where the store tells of it, and otherwise after at
    /// most [`PATIENCE`]. It may return for nothing; it never misses what is told after the last return. Who appends through
    /// this store knows of it.
    async fn wake(&self);

    /// Leaves the store as whoever opens it next likes to find it.
    async fn close(&self) {}
}

/// A name for a log that is being made: no other has it.
#[allow(clippy::disallowed_methods, reason = "this is where logs get their names")]
fn name() -> StoreId {
    uuid::Uuid::now_v7().into()
}

/// The longest time for which an append of another process may go unnoticed.
pub const PATIENCE: Duration = Duration::from_millis(250);
