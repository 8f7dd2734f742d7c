//! The log in a SQLite file: the default, embedded, for one machine.
//!
//! Commits are durable before they are acknowledged (write-ahead log, `synchronous=FULL`). Several processes may use
//! one file: an append takes SQLite's write lock before it looks at the head, so compare-and-swap holds across
//! processes too. Each row carries a checksum, because a damaged body could still be JSON, and a damaged reference
//! would make a cluster's answer shorter.

mod append;
mod dsn;
#[path = "sql/log.rs"]
mod log;
mod open;
#[path = "sql/rows.rs"]
mod rows;
#[path = "sql/schema.rs"]
mod schema;
mod writer;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Id, Kind, Op, Point, Revision};
use sqlx::{
    SqlSafeStr, Sqlite, SqliteConnection as Connection, SqlitePool,
    sqlite::{SqliteArguments, SqliteError, SqliteRow as Row},
};
use tokio::sync::Notify;

use crate::{AppendError, Changes, Ends, Entry, EntryQuery, PATIENCE, Picture, RestoreError, Store, StoreError, Tail};

use writer::{Work, Writer};

pub use dsn::{InvalidDsn, SqliteDsn};

type Query<'q> = sqlx::query::Query<'q, Db, SqliteArguments>;
type Db = Sqlite;

/// The statements that make the tables, one after another.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/sqlite/0001_log.sql")];

/// How many tables of ours are there.
const TABLES: &str = "SELECT count(*) AS tables FROM sqlite_schema WHERE name = 'fleet_schema'";

fn query<'q>(statement: impl SqlSafeStr) -> Query<'q> {
    sqlx::query(statement)
}

/// The log in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    reader: SqlitePool,
    /// None where the file was opened for reading only.
    writer: Option<Writer>,
    place: open::Place,
    appended: Notify,
}

impl SqliteStore {
    /// Begins to write, with the lock that all writers of the file share.
    async fn write(&self) -> Result<Work<'_>, StoreError> {
        let mut work = self.connect().await?;
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut work.connection).await?;
        Ok(work)
    }

    /// Takes the connection that writes.
    async fn connect(&self) -> Result<Work<'_>, StoreError> {
        self.place.check()?;
        let read_only = || StoreError::Unavailable("it was opened for reading only".to_owned());
        self.writer.as_ref().ok_or_else(read_only)?.take().await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self) -> Result<Picture, StoreError> {
        log::load(&mut *self.reader.begin().await?).await
    }

    async fn ends(&self) -> Result<Ends, StoreError> {
        self.place.check()?;
        log::ends(&mut *self.reader.begin().await?).await
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut work = self.connect().await?;
        let appended = append::write(&mut work.connection, changes).await?;
        let ends = if appended { None } else { Some(log::ends(&mut work.connection).await?) };
        work.done();
        if let Some(Ends { head, .. }) = ends {
            return Err(AppendError::Conflict { head });
        }
        self.appended.notify_one();
        Ok(())
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<Tail, StoreError> {
        self.place.check()?;
        log::changes_after(&mut *self.reader.begin().await?, after, limit).await
    }

    async fn load_at(&self, revision: Revision) -> Result<Picture, StoreError> {
        log::load_at(&mut *self.reader.begin().await?, revision).await
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        log::document_at(&mut *self.reader.begin().await?, kind, id, revision).await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
        log::entries(&mut *self.reader.begin().await?, query).await
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        log::digest_at(&mut *self.reader.begin().await?, revision).await
    }

    async fn overrules(&self, point: &Digest) -> Result<bool, StoreError> {
        log::overrules(&mut *self.reader.begin().await?, point).await
    }

    async fn first_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        log::first_since(&mut *self.reader.begin().await?, time).await
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut work = self.write().await?;
        let pruned = log::prune(&mut work.connection, horizon).await?;
        work.commit().await?;
        Ok(pruned)
    }

    async fn restore(&self, base: Picture, changes: &mut Changes<'_>, replace: bool) -> Result<Point, RestoreError> {
        let mut work = self.write().await?;
        let head = log::restore(&mut work.connection, base, changes, replace).await?;
        work.commit().await?;
        Ok(head)
    }

    async fn close(&self) {
        self.reader.close().await;
        if let Some(writer) = &self.writer
            && let Err(error) = writer.close().await
        {
            tracing::warn!("the file was not closed as it should be: {error}");
        }
    }

    async fn wake(&self) {
        // Running out of patience is one of the ways to return: another process may have written.
        let _ = tokio::time::timeout(PATIENCE, self.appended.notified()).await;
    }
}

/// Whether a failure is damage, and not trouble that may pass.
pub(crate) fn is_damage(error: &SqliteError) -> bool {
    const CORRUPT: u32 = 11;
    const NOT_A_DATABASE: u32 = 26;
    let code = sqlx::error::DatabaseError::code(error).and_then(|code| code.parse::<u32>().ok());
    // The low byte is the primary result code.
    code.is_some_and(|code| matches!(code & 0xff, CORRUPT | NOT_A_DATABASE))
}
