//! The log in a SQLite file: the default, embedded, for one machine.
//!
//! Commits are durable before they are acknowledged (write-ahead log, `synchronous=FULL`). Several processes may use
//! one file: an append takes SQLite's write lock before it looks at the head, so compare-and-swap holds across
//! processes too. Each row carries a checksum, because a damaged body could still be JSON, and a damaged reference
//! would make a cluster's answer shorter.

mod dsn;
mod open;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Body, Change, Document, Id, Kind, Op, Revision, State, Write};
use serde::Serialize;
use sqlx::{Row as _, Sqlite, SqlitePool, Transaction, error::DatabaseError, sqlite::SqliteRow};
use tokio::sync::Notify;

use crate::{AppendError, PATIENCE, Picture, Store, StoreError, Tail};

pub use dsn::{InvalidDsn, SqliteDsn};

/// The log in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    reader: SqlitePool,
    /// One connection: writers of this process queue here instead of at SQLite's lock. None where the file was opened
    /// for reading only.
    writer: Option<SqlitePool>,
    appended: Notify,
}

/// The head of the log.
struct Head {
    revision: Revision,
    /// How many documents there are.
    documents: i64,
}

impl Head {
    async fn read(transaction: &mut Transaction<'_, Sqlite>) -> Result<Self, StoreError> {
        let row = sqlx::query("SELECT revision, documents FROM changes ORDER BY revision DESC LIMIT 1")
            .fetch_optional(&mut **transaction)
            .await?;
        match row {
            None => Ok(Self { revision: Revision::ZERO, documents: 0 }),
            Some(row) => Ok(Self { revision: revision(&row)?, documents: column(&row, "documents")? }),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self) -> Result<Picture, StoreError> {
        let mut transaction = self.reader.begin().await?;
        let head = Head::read(&mut transaction).await?;
        let rows = sqlx::query("SELECT kind, id, revision, state, body, checksum FROM documents ORDER BY kind, id")
            .fetch_all(&mut *transaction)
            .await?;
        let documents = rows.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        if i64::try_from(documents.len()) != Ok(head.documents) {
            let found = documents.len();
            return Err(StoreError::Corrupt(format!("{found} documents are there, {} were written", head.documents)));
        }
        Ok(Picture { revision: head.revision, documents })
    }

    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        let Some(writer) = &self.writer else {
            return Err(StoreError::Unavailable("it was opened for reading only".to_owned()).into());
        };
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        let head = Head::read(&mut transaction).await?;
        if change.revision != head.revision.next() {
            return Err(AppendError::Conflict { head: head.revision });
        }
        write(&mut transaction, change, head.documents).await?;
        transaction.commit().await?;
        self.appended.notify_one();
        Ok(())
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<Tail, StoreError> {
        let mut transaction = self.reader.begin().await?;
        let head = Head::read(&mut transaction).await?.revision;
        if head <= after {
            return Ok(Tail { head, changes: Vec::new() });
        }
        let rows = sqlx::query("SELECT * FROM changes WHERE revision > ?1 ORDER BY revision LIMIT ?2")
            .bind(number(after))
            .bind(limit)
            .fetch_all(&mut *transaction)
            .await?;
        let mut changes = rows.iter().map(change).collect::<Result<Vec<_>, _>>()?;
        let expected = std::iter::successors(Some(after.next()), |revision| Some(revision.next()));
        if !changes.iter().map(|change| change.revision).eq(expected.take(changes.len())) {
            return Err(StoreError::Corrupt(format!("the log has a gap after revision {after}")));
        }
        let last = changes.last().map_or(after, |change| change.revision);
        let rows =
            sqlx::query("SELECT * FROM writes WHERE revision > ?1 AND revision <= ?2 ORDER BY revision, position")
                .bind(number(after))
                .bind(number(last))
                .fetch_all(&mut *transaction)
                .await?;
        let mut writes = rows.iter().map(|row| Ok((revision(row)?, written(row)?))).peekable();
        for change in &mut changes {
            let mine =
                |next: &Result<(Revision, Write), StoreError>| !matches!(next, Ok((of, _)) if *of != change.revision);
            while let Some(next) = writes.next_if(mine) {
                change.writes.push(next?.1);
            }
        }
        Ok(Tail { head, changes })
    }

    async fn wake(&self) {
        // Running out of patience is one of the ways to return: another process may have written.
        let _ = tokio::time::timeout(PATIENCE, self.appended.notified()).await;
    }
}

/// A write on its way into the file: all of a change travel as one JSON array, so that a change of ten thousand
/// writes takes as many statements as a change of one.
#[derive(Serialize)]
struct WriteRow<'a> {
    kind: &'a Kind,
    id: &'a Id,
    op: &'static str,
    body: Option<&'a str>,
    checksum: u32,
}

impl<'a> From<&'a Write> for WriteRow<'a> {
    fn from(write: &'a Write) -> Self {
        let (op, body) = match &write.op {
            Op::Put(body) => ("put", Some(body.as_str())),
            Op::Retire => ("retire", None),
            Op::Remove => ("remove", None),
        };
        Self { kind: &write.kind, id: &write.id, op, body, checksum: checksum(&write.kind, &write.id, body) }
    }
}

async fn write(transaction: &mut Transaction<'_, Sqlite>, change: &Change, documents: i64) -> Result<(), StoreError> {
    let revision = number(change.revision);
    let rows: Vec<_> = change.writes.iter().map(WriteRow::from).collect();
    let rows = serde_json::to_string(&rows).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    sqlx::query(
        "INSERT INTO writes (revision, position, kind, id, op, body, checksum)
         SELECT ?1, key, value ->> 'kind', value ->> 'id', value ->> 'op', value ->> 'body', value ->> 'checksum'
         FROM json_each(?2)",
    )
    .bind(revision)
    .bind(rows)
    .execute(&mut **transaction)
    .await?;
    let added: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM writes WHERE revision = ?1 AND op = 'put'
         AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.kind = writes.kind AND d.id = writes.id)",
    )
    .bind(revision)
    .fetch_one(&mut **transaction)
    .await?;
    bring_documents(
        transaction,
        revision,
        "INSERT INTO documents (kind, id, revision, state, body, checksum)
         SELECT kind, id, revision, 'live', body, checksum FROM writes WHERE revision = ?1 AND op = 'put'
         ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, state = excluded.state,
         body = excluded.body, checksum = excluded.checksum",
    )
    .await?;
    bring_documents(
        transaction,
        revision,
        "UPDATE documents SET state = 'retired', revision = ?1
         WHERE (kind, id) IN (SELECT kind, id FROM writes WHERE revision = ?1 AND op = 'retire')",
    )
    .await?;
    let removed = bring_documents(
        transaction,
        revision,
        "DELETE FROM documents
         WHERE (kind, id) IN (SELECT kind, id FROM writes WHERE revision = ?1 AND op = 'remove')",
    )
    .await?;
    sqlx::query(
        "INSERT INTO changes (revision, at, actor, reason, request_id, documents) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(revision)
    .bind(change.at.to_string())
    .bind(&change.actor)
    .bind(&change.reason)
    .bind(&change.request_id)
    .bind(documents + added - removed)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

/// Brings the documents up to the writes of a revision, by one statement; answers how many it touched.
async fn bring_documents(
    transaction: &mut Transaction<'_, Sqlite>,
    revision: i64,
    statement: &'static str,
) -> Result<i64, StoreError> {
    let touched = sqlx::query(statement).bind(revision).execute(&mut **transaction).await?;
    Ok(i64::try_from(touched.rows_affected()).unwrap_or(i64::MAX))
}

fn checksum(kind: &Kind, id: &Id, body: Option<&str>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [kind.as_str(), id.as_str(), body.unwrap_or_default()] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

/// SQLite's integers are signed; a log of more than 2^63 changes will not be written.
fn number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

fn column<'r, T>(row: &'r SqliteRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(name).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn revision(row: &SqliteRow) -> Result<Revision, StoreError> {
    let number: i64 = column(row, "revision")?;
    u64::try_from(number).map(Revision).map_err(|_| StoreError::Corrupt(format!("{number} is not a revision")))
}

/// The kind, the id and the body of a row whose checksum agrees with them.
fn checked(row: &SqliteRow) -> Result<(Kind, Id, Option<Body>), StoreError> {
    let kind = Kind::from(column::<&str>(row, "kind")?);
    let id: &str = column(row, "id")?;
    let damaged = |what: String| StoreError::Corrupt(format!("{kind} \"{id}\": {what}"));
    let body: Option<&str> = column(row, "body")?;
    let sum: u32 = column(row, "checksum")?;
    let id = Id::parse(id).map_err(|error| damaged(error.to_string()))?;
    if checksum(&kind, &id, body) != sum {
        return Err(damaged("its checksum does not agree with its content".to_owned()));
    }
    let body = body.map(Body::from_text);
    Ok((kind, id, body))
}

fn document(row: &SqliteRow) -> Result<Document, StoreError> {
    let (kind, id, body) = checked(row)?;
    let state = match column::<&str>(row, "state")? {
        "live" => State::Live,
        "retired" => State::Retired,
        other => return Err(StoreError::Corrupt(format!("\"{other}\" is not a state"))),
    };
    let body = body.ok_or_else(|| StoreError::Corrupt(format!("{kind} \"{id}\" has no body")))?;
    Ok(Document { kind, id, revision: revision(row)?, state, body })
}

fn written(row: &SqliteRow) -> Result<Write, StoreError> {
    let (kind, id, body) = checked(row)?;
    let op = match (column::<&str>(row, "op")?, body) {
        ("put", Some(body)) => Op::Put(body),
        ("retire", None) => Op::Retire,
        ("remove", None) => Op::Remove,
        (other, _) => return Err(StoreError::Corrupt(format!("\"{other}\" is not a write of {kind} \"{id}\""))),
    };
    Ok(Write { kind, id, op })
}

fn change(row: &SqliteRow) -> Result<Change, StoreError> {
    let at: &str = column(row, "at")?;
    Ok(Change {
        revision: revision(row)?,
        at: at.parse::<Timestamp>().map_err(|error| StoreError::Corrupt(error.to_string()))?,
        actor: column(row, "actor")?,
        reason: column(row, "reason")?,
        request_id: column(row, "request_id")?,
        writes: Vec::new(),
    })
}

/// Tells damage from trouble that may pass.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        const CORRUPT: u32 = 11;
        const NOT_A_DATABASE: u32 = 26;
        let code = error.as_database_error().and_then(DatabaseError::code).and_then(|code| code.parse::<u32>().ok());
        // The low byte is the primary result code.
        match code.map(|code| code & 0xff) {
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
