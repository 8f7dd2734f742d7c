//! The log in a SQLite file: the default, embedded, for one machine.
//!
//! Commits are durable before they are acknowledged (write-ahead log, `synchronous=FULL`). Several processes may use
//! one file: an append takes SQLite's write lock before it looks at the head, so compare-and-swap holds across
//! processes too. Each row carries a checksum, because a damaged body could still be JSON, and a damaged reference
//! would make a cluster's answer shorter.

mod append;
mod dsn;
mod open;
mod rows;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Id, Kind, Op, Revision};
use sqlx::{Sqlite, SqlitePool, Transaction};
use tokio::sync::Notify;

use crate::{AppendError, Entry, EntryQuery, PATIENCE, Picture, Store, StoreError, Tail};

pub use dsn::{InvalidDsn, SqliteDsn};

/// The log in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    reader: SqlitePool,
    /// One connection: writers of this process queue here instead of at SQLite's lock. None where the file was opened
    /// for reading only.
    writer: Option<SqlitePool>,
    place: open::Place,
    appended: Notify,
}

/// The two ends of the log.
struct Ends {
    horizon: Revision,
    head: Revision,
    /// How many documents there are at the head.
    documents: i64,
}

impl Ends {
    async fn read(transaction: &mut Transaction<'_, Sqlite>) -> Result<Self, StoreError> {
        let row = sqlx::query(
            "SELECT h.revision AS horizon, coalesce(c.revision, 0) AS revision, coalesce(c.documents, 0) AS documents
             FROM horizon h LEFT JOIN (SELECT revision, documents FROM changes ORDER BY revision DESC LIMIT 1) c",
        )
        .fetch_one(&mut **transaction)
        .await?;
        Ok(Self {
            horizon: rows::revision(&row, "horizon")?,
            head: rows::revision(&row, "revision")?,
            documents: rows::column(&row, "documents")?,
        })
    }

    /// Whether everything after a revision is still known.
    fn keep(&self, revision: Revision) -> Result<(), StoreError> {
        if revision < self.horizon { Err(StoreError::Pruned { horizon: self.horizon }) } else { Ok(()) }
    }
}

impl SqliteStore {
    fn writer(&self) -> Result<&SqlitePool, StoreError> {
        self.writer.as_ref().ok_or_else(|| StoreError::Unavailable("it was opened for reading only".to_owned()))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self) -> Result<Picture, StoreError> {
        let mut transaction = self.reader.begin().await?;
        let ends = Ends::read(&mut transaction).await?;
        let rows = sqlx::query("SELECT * FROM documents ORDER BY kind, id").fetch_all(&mut *transaction).await?;
        let documents = rows.iter().map(rows::document).collect::<Result<Vec<_>, _>>()?;
        if i64::try_from(documents.len()) != Ok(ends.documents) {
            let found = documents.len();
            return Err(StoreError::Corrupt(format!("{found} documents are there, {} were written", ends.documents)));
        }
        Ok(Picture { revision: ends.head, documents })
    }

    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        self.place.check()?;
        let mut transaction = self.writer()?.begin_with("BEGIN IMMEDIATE").await?;
        let ends = Ends::read(&mut transaction).await?;
        if change.revision != ends.head.next() {
            return Err(AppendError::Conflict { head: ends.head });
        }
        append::write(&mut transaction, change, ends.documents).await?;
        transaction.commit().await?;
        self.appended.notify_one();
        Ok(())
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<Tail, StoreError> {
        self.place.check()?;
        let mut transaction = self.reader.begin().await?;
        let ends = Ends::read(&mut transaction).await?;
        if ends.head <= after {
            return Ok(Tail { head: ends.head, changes: Vec::new() });
        }
        ends.keep(after)?;
        let found = sqlx::query("SELECT * FROM changes WHERE revision > ?1 ORDER BY revision LIMIT ?2")
            .bind(rows::number(after))
            .bind(limit)
            .fetch_all(&mut *transaction)
            .await?;
        let mut changes = found.iter().map(rows::change).collect::<Result<Vec<_>, _>>()?;
        let expected = std::iter::successors(Some(after.next()), |revision| Some(revision.next()));
        if !changes.iter().map(|change| change.revision).eq(expected.take(changes.len())) {
            return Err(StoreError::Corrupt(format!("the log has a gap after revision {after}")));
        }
        let last = changes.last().map_or(after, |change| change.revision);
        let found =
            sqlx::query("SELECT * FROM writes WHERE revision > ?1 AND revision <= ?2 ORDER BY revision, position")
                .bind(rows::number(after))
                .bind(rows::number(last))
                .fetch_all(&mut *transaction)
                .await?;
        let mut found = found.iter().peekable();
        for change in &mut changes {
            let number = rows::number(change.revision);
            while let Some(row) = found.next_if(|row| rows::column(row, "revision").is_ok_and(|of: i64| of == number)) {
                change.writes.push(rows::write(row)?);
            }
        }
        match found.next() {
            Some(_) => Err(StoreError::Corrupt("a write belongs to no change".to_owned())),
            None => Ok(Tail { head: ends.head, changes }),
        }
    }

    async fn load_at(&self, revision: Revision) -> Result<Picture, StoreError> {
        let mut transaction = self.reader.begin().await?;
        Ends::read(&mut transaction).await?.keep(revision)?;
        let rows = sqlx::query(
            "SELECT w.* FROM writes w
             JOIN (SELECT kind, id, max(revision) AS revision FROM writes WHERE revision <= ?1 GROUP BY kind, id) last
             USING (kind, id, revision) WHERE w.op <> 'remove' ORDER BY kind, id",
        )
        .bind(rows::number(revision))
        .fetch_all(&mut *transaction)
        .await?;
        Ok(Picture { revision, documents: rows.iter().map(rows::document).collect::<Result<_, _>>()? })
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        let mut transaction = self.reader.begin().await?;
        Ends::read(&mut transaction).await?.keep(revision)?;
        let row = sqlx::query(
            "SELECT * FROM writes WHERE kind = ?1 AND id = ?2 AND revision <= ?3 ORDER BY revision DESC LIMIT 1",
        )
        .bind(kind.as_str())
        .bind(id.as_str())
        .bind(rows::number(revision))
        .fetch_optional(&mut *transaction)
        .await?;
        row.map(|row| Ok((rows::revision(&row, "revision")?, rows::write(&row)?.op))).transpose()
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
        let mut transaction = self.reader.begin().await?;
        let found = sqlx::query(
            "SELECT c.* FROM changes c, horizon h
             WHERE c.revision > h.revision
               AND (?1 IS NULL OR c.revision < ?1) AND (?2 IS NULL OR c.actor = ?2)
               AND (?3 IS NULL OR c.at >= ?3) AND (?4 IS NULL OR c.at < ?4)
               AND ((?5 IS NULL AND ?6 IS NULL) OR EXISTS (SELECT 1 FROM writes w WHERE w.revision = c.revision
                    AND (?5 IS NULL OR w.kind = ?5) AND (?6 IS NULL OR w.id = ?6)))
             ORDER BY c.revision DESC LIMIT ?7",
        )
        .bind(query.before.map(rows::number))
        .bind(&query.actor)
        .bind(query.since.map(Timestamp::as_microsecond))
        .bind(query.until.map(Timestamp::as_microsecond))
        .bind(query.kind.as_ref().map(Kind::as_str))
        .bind(query.id.as_ref().map(Id::as_str))
        .bind(query.limit)
        .fetch_all(&mut *transaction)
        .await?;
        let mut entries = Vec::with_capacity(found.len());
        for row in &found {
            let change = rows::change(row)?;
            let writes = sqlx::query("SELECT kind, id, op FROM writes WHERE revision = ?1 ORDER BY position")
                .bind(rows::number(change.revision))
                .fetch_all(&mut *transaction)
                .await?;
            entries.push(Entry { change, writes: writes.iter().map(rows::touched).collect::<Result<_, _>>()? });
        }
        Ok(entries)
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut transaction = self.writer()?.begin_with("BEGIN IMMEDIATE").await?;
        let ends = Ends::read(&mut transaction).await?;
        // The last change stays: it says how many documents there are.
        let horizon = horizon.min(Revision(ends.head.0.saturating_sub(1)));
        if horizon <= ends.horizon {
            return Ok(None);
        }
        for statement in [
            "DELETE FROM writes WHERE revision <= ?1 AND (op = 'remove' OR EXISTS (SELECT 1 FROM writes later
             WHERE later.kind = writes.kind AND later.id = writes.id AND later.revision > writes.revision
             AND later.revision <= ?1))",
            "DELETE FROM changes WHERE revision <= ?1",
            "UPDATE horizon SET revision = ?1",
        ] {
            sqlx::query(statement).bind(rows::number(horizon)).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(Some(horizon))
    }

    async fn close(&self) {
        self.reader.close().await;
        // The last connection to close moves the write-ahead log into the file.
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }

    async fn wake(&self) {
        // Running out of patience is one of the ways to return: another process may have written.
        let _ = tokio::time::timeout(PATIENCE, self.appended.notified()).await;
    }
}

/// Tells damage from trouble that may pass.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        const CORRUPT: u32 = 11;
        const NOT_A_DATABASE: u32 = 26;
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        // The low byte is the primary result code.
        match code.and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff) {
            Some(CORRUPT | NOT_A_DATABASE) => Self::Corrupt(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<sqlx::Error> for AppendError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}
