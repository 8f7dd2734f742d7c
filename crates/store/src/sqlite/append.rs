//! Writing a change: into the log, and into the picture at its head.

use model::{Change, Id, Kind, Write};
use serde::Serialize;
use sqlx::{Sqlite, Transaction};

use super::rows::{checksum, number};
use crate::StoreError;

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
        let body = write.op.body().map(model::Body::as_str);
        let checksum = checksum(&write.kind, &write.id, body);
        Self { kind: &write.kind, id: &write.id, op: write.op.name(), body, checksum }
    }
}

/// Writes a change; `documents` is how many there were before it.
pub(super) async fn write(
    transaction: &mut Transaction<'_, Sqlite>,
    change: &Change,
    documents: i64,
) -> Result<(), StoreError> {
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
        "SELECT count(*) FROM writes WHERE revision = ?1 AND op <> 'remove'
         AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.kind = writes.kind AND d.id = writes.id)",
    )
    .bind(revision)
    .fetch_one(&mut **transaction)
    .await?;
    sqlx::query(
        "INSERT INTO documents (kind, id, revision, op, body, checksum)
         SELECT kind, id, revision, op, body, checksum FROM writes WHERE revision = ?1 AND op <> 'remove'
         ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op, body = excluded.body,
         checksum = excluded.checksum",
    )
    .bind(revision)
    .execute(&mut **transaction)
    .await?;
    let removed = sqlx::query(
        "DELETE FROM documents
         WHERE (kind, id) IN (SELECT kind, id FROM writes WHERE revision = ?1 AND op = 'remove')",
    )
    .bind(revision)
    .execute(&mut **transaction)
    .await?;
    let removed = i64::try_from(removed.rows_affected()).unwrap_or(i64::MAX);
    sqlx::query(
        "INSERT INTO changes (revision, at, actor, reason, request_id, documents) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(revision)
    .bind(change.at.as_microsecond())
    .bind(&change.actor)
    .bind(&change.reason)
    .bind(&change.request_id)
    .bind(documents + added - removed)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
