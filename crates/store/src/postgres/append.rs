//! Writes changes to the log, and to the documents at its head.

use model::Change;

use super::{Connection, Query, query, rows};
use crate::StoreError;

/// The codes of a serialization failure and of a deadlock.
const CONFLICT_CODES: [&str; 2] = ["40001", "40P01"];

/// The statements that empty a log.
pub(super) const DELETE_ALL: &[&str] =
    &["DELETE FROM fleet_writes", "DELETE FROM fleet_changes", "DELETE FROM fleet_documents", "DELETE FROM fleet_past"];

/// Makes every write the current document. There must be one write for each document.
pub(super) const INSERT_CURRENT: &str = "INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
     SELECT kind, id, revision, op, body, checksum FROM fleet_writes";

/// The values of one column of all rows. Columns are bound as arrays, so that a change of ten thousand writes is one statement.
macro_rules! column {
    ($rows:expr, $name:ident) => {
        $rows.iter().map(|row| row.$name).collect::<Vec<_>>()
    };
}

/// Appends changes in the caller's transaction. Returns false if one does not come directly after the head; the caller then
/// rolls back. The transaction that moves the head locks its row; others wait for the lock, and then find that the head has
/// moved.
pub(super) async fn append_all(connection: &mut Connection, changes: &[Change]) -> Result<bool, StoreError> {
    for change in changes {
        if !append(connection, change).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn append(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    let rows = change.writes.iter().enumerate().map(|(at, write)| rows::WriteRow::new(write, change.revision, at));
    let rows: Vec<_> = rows.collect();
    let append = query(
        "WITH w AS MATERIALIZED (
             SELECT * FROM unnest($10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[])
             AS w (position, kind, id, op, body, checksum)
         ), head AS (
             UPDATE fleet_log SET head = $1, epoch = $2, digest = $5, documents = documents
             + (SELECT count(*) FROM w WHERE op <> 'remove'
                AND NOT EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))
             - (SELECT count(*) FROM w WHERE op = 'remove'
                AND EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))
             WHERE head = $1 - 1 AND digest = $4 RETURNING head AS revision
         ), writes AS (
             INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
             SELECT revision, position, kind, id, op, body, checksum FROM head, w
         ), documents AS (
             INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
             SELECT kind, id, revision, op, body, checksum FROM head, w WHERE op <> 'remove'
             ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op,
             body = excluded.body, checksum = excluded.checksum
         )
         INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
         SELECT revision, $2, $3, $4, $5, $6, $7, $8, $9 FROM head",
    )
    .bind(rows::to_i64(change.revision.0));
    let append = rows::bind_change(append, change).bind(column!(rows, position));
    let written = bind_content(append, &rows).execute(&mut *connection).await;
    match written {
        Ok(written) if written.rows_affected() == 0 => return Ok(false),
        // A database that does not let writers wait for one another reports a conflict instead.
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| CONFLICT_CODES.contains(&&*code)) => {
            return Ok(false);
        }
        other => other?,
    };
    if rows.iter().any(|row| row.op == "remove") {
        query(
            "DELETE FROM fleet_documents
             WHERE (kind, id) IN (SELECT kind, id FROM fleet_writes WHERE revision = $1 AND op = 'remove')",
        )
        .bind(rows::to_i64(change.revision.0))
        .execute(connection)
        .await?;
    }
    Ok(true)
}

pub(super) async fn insert_writes(
    connection: &mut Connection,
    rows: Vec<rows::WriteRow<'_>>,
) -> Result<(), StoreError> {
    let insert = query(
        "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])",
    )
    .bind(column!(rows, revision))
    .bind(column!(rows, position));
    bind_content(insert, &rows).execute(connection).await?;
    Ok(())
}

/// Binds the columns of rows that come after revision and position.
fn bind_content<'q>(query: Query<'q>, rows: &'q [rows::WriteRow<'_>]) -> Query<'q> {
    query
        .bind(column!(rows, kind))
        .bind(column!(rows, id))
        .bind(column!(rows, op))
        .bind(rows.iter().map(|row| row.body.as_deref()).collect::<Vec<_>>())
        .bind(column!(rows, checksum))
}
