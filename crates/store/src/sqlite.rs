//! The log in a SQLite file: the default, embedded, for one machine.
//!
//! Commits are durable before they are acknowledged (write-ahead log, `synchronous=FULL`). Several processes may use
//! one file: an append takes SQLite's write lock before it looks at the head, so compare-and-swap holds across
//! processes too. Each row carries a checksum, because a damaged body could still be JSON, and a damaged reference
//! would make a cluster's answer shorter.

#![allow(clippy::unused_async, reason = "src/sql speaks to all databases as to one over a network")]

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
    AppendError, Changes, Ends, Entry, EntryQuery, Kinds, PATIENCE, Picture, Pieces, RestoreError, Store, StoreError,
    Tail, WriteAndBefore, pieces::aside,
};

use connection::{Connection, Query, Row, column, query, run};
use connections::{Readers, Work, Writer};

pub use dsn::{InvalidDsn, SqliteDsn};

/// The statements that make the tables, one after another.
const MIGRATIONS: &[&str] =
    &[include_str!("../migrations/sqlite/0001_log.sql"), include_str!("../migrations/sqlite/0002_bodies_once.sql")];

/// How many tables of ours are there.
const TABLES: &str = "SELECT count(*) AS tables FROM sqlite_schema WHERE name = 'fleet_schema'";

/// The log in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    /// For whoever follows the log.
    readers: Readers,
    /// For reads of the past, which never make a follower or a writer wait.
    past: Readers,
    /// None where the file was opened for reading only.
    writer: Option<Writer>,
    place: open::Place,
}

impl SqliteStore {
    /// Takes the connection that writes.
    async fn write(&self) -> Result<Work<'_>, StoreError> {
        self.place.check()?;
        let read_only = || StoreError::Unavailable("it was opened for reading only".to_owned());
        self.writer.as_ref().ok_or_else(read_only)?.take().await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(&self, to: Pieces) -> Result<Point, StoreError> {
        let mut reading = self.readers.begin().await?;
        let point = log::read(&mut reading.connection, &to).await;
        reading.end(point)
    }

    async fn ends(&self) -> Result<Ends, StoreError> {
        self.place.check()?;
        let mut reading = self.past.begin().await?;
        let ends = log::ends(&mut reading.connection).await;
        reading.end(ends)
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut work = self.write().await?;
        let conflict = aside(|| append::commit(&mut work.connection, changes))?;
        work.done();
        conflict.map_or(Ok(()), |head| Err(AppendError::Conflict { head }))
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<Tail, StoreError> {
        self.place.check()?;
        let mut reading = self.readers.begin().await?;
        let tail = log::changes_after(&mut reading.connection, after, limit).await;
        reading.end(tail)
    }

    async fn documents_at(&self, revision: Revision, kinds: Kinds) -> Result<Picture, StoreError> {
        let mut reading = self.past.begin().await?;
        let picture = log::documents_at(&mut reading.connection, revision, &kinds).await;
        reading.end(picture)
    }

    async fn writes_of(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError> {
        let mut reading = self.past.begin().await?;
        let writes = log::writes_of(&mut reading.connection, revision, from, limit).await;
        reading.end(writes)
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        let mut reading = self.past.begin().await?;
        let found = log::document_at(&mut reading.connection, kind, id, revision).await;
        reading.end(found)
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
        let mut reading = self.past.begin().await?;
        let entries = log::entries(&mut reading.connection, query).await;
        reading.end(entries)
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        let mut reading = self.readers.begin().await?;
        let digest = log::digest_at(&mut reading.connection, revision).await;
        reading.end(digest)
    }

    async fn overrules(&self, point: &Digest) -> Result<bool, StoreError> {
        let mut reading = self.readers.begin().await?;
        let overrules = log::overrules(&mut reading.connection, point).await;
        reading.end(overrules)
    }

    async fn first_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        let mut reading = self.readers.begin().await?;
        let first = log::first_since(&mut reading.connection, time).await;
        reading.end(first)
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut work = self.write().await?.begin()?;
        let pruned = log::prune(&mut work.connection, horizon).await?;
        work.commit()?;
        Ok(pruned)
    }

    async fn restore(&self, base: Picture, changes: &mut Changes<'_>, replace: bool) -> Result<Point, RestoreError> {
        let mut work = self.write().await?.begin()?;
        let head = log::restore(&mut work.connection, base, changes, replace).await?;
        work.commit()?;
        Ok(head)
    }

    async fn close(&self) {
        self.readers.close();
        self.past.close();
        if let Some(writer) = &self.writer
            && let Err(error) = writer.close().await
        {
            tracing::warn!("the file was not closed as it should be: {error}");
        }
    }

    async fn wake(&self) {
        // A file does not tell.
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Tells damage from trouble that may pass.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        const CORRUPT: i32 = 11;
        const NOT_A_DATABASE: i32 = 26;
        let rusqlite::Error::SqliteFailure(failure, said) = &error else {
            return Self::Unavailable(error.to_string());
        };
        let code = failure.extended_code;
        let what = said.as_ref().map_or_else(|| failure.to_string(), |said| format!("{said} ({code})"));
        // The low byte is the primary result code.
        if matches!(code & 0xff, CORRUPT | NOT_A_DATABASE) { Self::Corrupt(what) } else { Self::Unavailable(what) }
    }
}
