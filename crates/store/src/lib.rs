//! What happened: the change log, append-only and totally ordered. It is the only truth; the fleet at a revision follows
//! from it.
//!
//! A backend keeps a short promise, the [`Store`] trait, and the promise is a test suite (`tests/contract/main.rs`) that
//! runs on each of them. A store never guesses: what it cannot read completely is an error, because the caller decides
//! from it what clusters delete.

#![expect(clippy::duplicate_mod, reason = "src/sql is one source for all databases, compiled for each")]

pub mod archive;
mod chunks;
mod error;
mod memory;
mod postgres;
pub mod seed;
mod sqlite;

use std::{slice, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Document, Id, Kind, Op, Point, Revision, StoreId, Write};

use chunks::DocumentCollector;

pub use chunks::{DocumentSender, document_channel};
pub use error::{AppendError, RestoreError, StoreError};
pub use memory::MemoryStore;
pub use postgres::{PostgresDsn, PostgresStore, Timeouts};
pub use sqlite::{InvalidDsn, SqliteDsn, SqliteStore};

/// What to do where the tables of a database are missing or of an older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingTables {
    /// Create or migrate them.
    Create,
    /// Refuse the database.
    Refuse,
}

/// All documents at one revision, as read from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFleet {
    /// The point in the history at which they were read.
    pub point: Point,
    /// All documents and tombstones, ordered by kind and id.
    pub documents: Vec<Document>,
}

/// Where the change log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// Every change after this point is still stored.
    pub horizon: Point,
    /// The newest change.
    pub head: Point,
}

/// Changes after some revision, and the head of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeBatch {
    /// The head of the log. If it is *before* the requested revision, the log lost its end.
    pub head: Point,
    /// The requested changes, in order and without a gap.
    pub changes: Vec<Change>,
}

impl ChangeBatch {
    /// Whether it continues the history that led to a point: the one after which the changes were requested.
    #[must_use]
    pub fn continues(&self, point: &Point) -> bool {
        let before = self.changes.first().map_or(self.head.digest, |first| first.parent);
        self.head.store == point.store && before == point.digest
    }
}

/// A change as the audit trail lists it: who, when, why and which documents, without their bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLogEntry {
    /// The change, without its writes.
    pub change: Change,
    /// The first [`LISTED_WRITES`] of the documents that it wrote: kind, id and the name of the operation.
    pub writes: Vec<(Kind, Id, String)>,
    /// How many documents it wrote.
    pub total: usize,
}

/// How many of the documents that a change wrote an entry names: a change of a whole fleet has tens of thousands.
pub const LISTED_WRITES: usize = 50;

/// Selects documents by their kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindFilter {
    /// Documents of every kind.
    All,
    /// Documents of this kind.
    Only(Kind),
    /// Documents of every other kind.
    Except(Kind),
}

impl KindFilter {
    /// Whether documents of a kind are selected.
    #[must_use]
    pub fn matches(&self, kind: &Kind) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => kind == only,
            Self::Except(except) => kind != except,
        }
    }
}

/// One write of a change, and the document before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteAndBefore {
    /// The write.
    pub write: Write,
    /// The document before it; none if it did not exist.
    pub before: Option<Op>,
}

/// Selects entries of the audit trail.
#[derive(Clone, Debug, Default)]
pub struct ChangeLogQuery {
    /// Only changes that wrote a document of this kind.
    pub kind: Option<Kind>,
    /// Only changes that wrote a document of this id.
    pub id: Option<Id>,
    /// Only changes of this actor.
    pub actor: Option<String>,
    /// Only changes made at or after this time.
    pub since: Option<Timestamp>,
    /// Only changes made before this time.
    pub until: Option<Timestamp>,
    /// Only changes before this revision: the last one of the previous page.
    pub before: Option<Revision>,
    /// Only changes after this revision.
    pub after: Option<Revision>,
    /// The most entries to return.
    pub limit: u32,
}

/// Changes to restore into a store, in order, each after the one before it.
pub type RestoreChanges<'a> = dyn Iterator<Item = Result<Change, RestoreError>> + Send + 'a;

/// Stores the change log.
///
/// Reads of the past (`documents_at`, `load_at`, `writes_of_change`, `document_at`, `change_log_entries`) have database
/// connections of their own, so that neither a follower nor a writer waits for one of them.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads all documents and tombstones at the head, from one consistent read, and sends them in chunks, those of
    /// clusters last: they refer to the others. The documents may be used only once this has returned the point.
    async fn read_documents(&self, to: DocumentSender) -> Result<Point, StoreError>;

    /// All documents at the head.
    async fn load(&self) -> Result<StoredFleet, StoreError> {
        let (to, collector) = DocumentCollector::start();
        let point = self.read_documents(to).await?;
        collector.finish(point).await
    }

    /// Where the log begins and ends.
    async fn bounds(&self) -> Result<LogBounds, StoreError>;

    /// Appends changes, each of which follows the one before it: durably, and all of them or none. Compare-and-swap: if the
    /// first does not come directly after the head, with the head's digest as its parent, this fails with
    /// [`AppendError::Conflict`] and has done nothing. Of several writers of one revision, one wins. Several changes take
    /// hardly longer than one (group commit).
    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError>;

    /// Appends one change.
    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        self.append_all(slice::from_ref(change)).await
    }

    /// At most `limit` changes after a revision.
    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<ChangeBatch, StoreError>;

    /// The documents of some kinds as they were at a revision, tombstones included, ordered by kind and id.
    async fn documents_at(&self, revision: Revision, kinds: KindFilter) -> Result<StoredFleet, StoreError>;

    /// All documents as they were at a revision.
    async fn load_at(&self, revision: Revision) -> Result<StoredFleet, StoreError> {
        self.documents_at(revision, KindFilter::All).await
    }

    /// At most `limit` writes of a change, from a position on, in their order; empty after the last.
    async fn writes_of_change(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError>;

    /// The last write to a document at or before a revision, and the revision that made it.
    async fn document_at(&self, kind: &Kind, id: &Id, revision: Revision)
    -> Result<Option<(Revision, Op)>, StoreError>;

    /// The changes that a query selects, newest first.
    async fn change_log_entries(&self, query: &ChangeLogQuery) -> Result<Vec<ChangeLogEntry>, StoreError>;

    /// The digest of a change. It is stored for longer than the change itself.
    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError>;

    /// Whether an operator's acceptance overrules the history that led to a digest.
    async fn is_overruled(&self, digest: &Digest) -> Result<bool, StoreError>;

    /// The first change that was made at or after a time.
    async fn first_revision_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError>;

    /// Deletes the changes up to a revision and keeps the documents at it: the past gets shorter, the present does not
    /// change. Reading what was deleted is [`StoreError::Pruned`]. The newest change is always kept. Returns the new horizon
    /// if there was something to delete.
    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError>;

    /// Restores a whole log, all or nothing: the documents at a revision, and the changes after it. Refuses to do so over
    /// another log, unless `replace` is set. Returns the head.
    async fn restore(
        &self,
        base: StoredFleet,
        changes: &mut RestoreChanges<'_>,
        replace: bool,
    ) -> Result<Point, RestoreError>;

    /// Returns when another process may have appended to the log: at once where the store notifies us, and otherwise after
    /// at most [`WAKE_INTERVAL`]. It may return although nothing was appended; a notification that came after the last return
    /// is never missed. Appends through this store do not need it.
    async fn wait_for_append(&self);

    /// Closes the connections and leaves the store clean for the next process that opens it.
    async fn close(&self) {}
}

/// A new, unique name for a log.
#[expect(clippy::disallowed_methods, reason = "this is where logs get their names")]
fn new_store_id() -> StoreId {
    uuid::Uuid::now_v7().into()
}

/// The longest time for which an append of another process may go unnoticed.
pub const WAKE_INTERVAL: Duration = Duration::from_millis(250);
