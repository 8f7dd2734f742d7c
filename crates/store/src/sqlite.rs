//! The change log in a SQLite file: the default, embedded, for one machine.
//!
//! Commits are durable before they are acknowledged (write-ahead log, `synchronous=FULL`). Several processes may use
//! one file: an append takes SQLite's write lock before it reads the head, so compare-and-swap holds across
//! processes too. Each row has a checksum, because a damaged body could still be JSON, and a damaged reference
//! would make a cluster's answer shorter.

#![expect(clippy::unused_async, reason = "src/sql calls every database as one over a network")]

mod append;
mod connection;
mod connections;
mod documents;
mod dsn;
#[path = "sql/log.rs"]
mod log;
mod open;
#[path = "sql/rows.rs"]
mod rows;
#[path = "sql/schema.rs"]
mod schema;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Id, Kind, Op, Point, Revision};

use crate::{
    AppendError, ChangeBatch, ChangeLogEntry, ChangeLogQuery, DocumentSender, KindFilter, LogBounds, RestoreChanges,
    RestoreError, Store, StoreError, StoredFleet, WAKE_INTERVAL, WriteAndBefore, chunks::run_blocking,
};

use connection::{SqliteConnection as Connection, SqliteQuery as Query, SqliteRow as Row, column, query, run};
use connections::{ReadConnections, WriteConnection, WriteLease};

pub use dsn::{InvalidDsn, SqliteDsn};

/// The statements that create and migrate the tables, in order of version.
const MIGRATIONS: &[&str] =
    &[include_str!("../migrations/sqlite/0001_log.sql"), include_str!("../migrations/sqlite/0002_bodies_once.sql")];

/// Counts our tables: one, or zero in a new database.
const COUNT_TABLES: &str = "SELECT count(*) AS tables FROM sqlite_schema WHERE name = 'fleet_schema'";

/// The change log in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    /// For the follower.
    readers: ReadConnections,
    /// For reads of the past, so that a follower or a writer never waits for them.
    past_readers: ReadConnections,
    /// None if the file was opened for reading only.
    writer: Option<WriteConnection>,
    file: open::OpenedFile,
}

impl SqliteStore {
    /// Waits for the connection that writes.
    async fn lease_writer(&self) -> Result<WriteLease<'_>, StoreError> {
        self.file.ensure_not_replaced()?;
        let read_only = || StoreError::Unavailable("it was opened for reading only".to_owned());
        self.writer.as_ref().ok_or_else(read_only)?.lease().await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read_documents(&self, to: DocumentSender) -> Result<Point, StoreError> {
        let mut reading = self.readers.begin().await?;
        let point = log::read_documents(&mut reading.connection, &to).await;
        reading.end(point)
    }

    async fn bounds(&self) -> Result<LogBounds, StoreError> {
        self.file.ensure_not_replaced()?;
        let mut reading = self.past_readers.begin().await?;
        let bounds = log::bounds(&mut reading.connection).await;
        reading.end(bounds)
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut lease = self.lease_writer().await?;
        let conflict = run_blocking(|| append::commit(&mut lease.connection, changes))?;
        lease.give_back();
        conflict.map_or(Ok(()), |head| Err(AppendError::Conflict { head }))
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<ChangeBatch, StoreError> {
        self.file.ensure_not_replaced()?;
        let mut reading = self.readers.begin().await?;
        let batch = log::changes_after(&mut reading.connection, after, limit).await;
        reading.end(batch)
    }

    async fn documents_at(&self, revision: Revision, kinds: KindFilter) -> Result<StoredFleet, StoreError> {
        let mut reading = self.past_readers.begin().await?;
        let fleet = log::documents_at(&mut reading.connection, revision, &kinds).await;
        reading.end(fleet)
    }

    async fn writes_of_change(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError> {
        let mut reading = self.past_readers.begin().await?;
        let writes = log::writes_of_change(&mut reading.connection, revision, from, limit).await;
        reading.end(writes)
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        let mut reading = self.past_readers.begin().await?;
        let found = log::document_at(&mut reading.connection, kind, id, revision).await;
        reading.end(found)
    }

    async fn change_log_entries(&self, query: &ChangeLogQuery) -> Result<Vec<ChangeLogEntry>, StoreError> {
        let mut reading = self.past_readers.begin().await?;
        let entries = log::change_log_entries(&mut reading.connection, query).await;
        reading.end(entries)
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        let mut reading = self.readers.begin().await?;
        let digest = log::digest_at(&mut reading.connection, revision).await;
        reading.end(digest)
    }

    async fn is_overruled(&self, point: &Digest) -> Result<bool, StoreError> {
        let mut reading = self.readers.begin().await?;
        let overrules = log::is_overruled(&mut reading.connection, point).await;
        reading.end(overrules)
    }

    async fn first_revision_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        let mut reading = self.readers.begin().await?;
        let first = log::first_revision_since(&mut reading.connection, time).await;
        reading.end(first)
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut lease = self.lease_writer().await?.begin()?;
        let pruned = log::prune(&mut lease.connection, horizon).await?;
        lease.commit()?;
        Ok(pruned)
    }

    async fn restore(
        &self,
        base: StoredFleet,
        changes: &mut RestoreChanges<'_>,
        replace: bool,
    ) -> Result<Point, RestoreError> {
        let mut lease = self.lease_writer().await?.begin()?;
        let head = log::restore(&mut lease.connection, base, changes, replace).await?;
        lease.commit()?;
        Ok(head)
    }

    async fn close(&self) {
        self.readers.close();
        self.past_readers.close();
        if let Some(writer) = &self.writer
            && let Err(error) = writer.close().await
        {
            tracing::warn!("cannot close the SQLite file cleanly; SQLite recovers it at the next start: {error}");
        }
    }

    async fn wait_for_append(&self) {
        // A file sends no notifications.
        tokio::time::sleep(WAKE_INTERVAL).await;
    }
}

/// Separates damage from errors that a retry may solve.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        const CORRUPT: i32 = 11;
        const NOT_A_DATABASE: i32 = 26;
        let rusqlite::Error::SqliteFailure(failure, message) = &error else {
            return Self::Unavailable(error.to_string());
        };
        let code = failure.extended_code;
        let what = message.as_ref().map_or_else(|| failure.to_string(), |message| format!("{message} ({code})"));
        // The low byte is the primary result code.
        if matches!(code & 0xff, CORRUPT | NOT_A_DATABASE) { Self::Corrupt(what) } else { Self::Unavailable(what) }
    }
}
