//! Writing a change: into the log, and into the picture at its head.

use model::Change;

use super::{Connection, query, rows};
use crate::StoreError;

/// Writes a change; says false, having done nothing, where it does not come directly after the head.
pub(super) async fn write(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    let revision = rows::number(change.revision.0);
    let moved = query("UPDATE fleet_log SET head = $1, epoch = $2, digest = $3 WHERE head = $1 - 1 AND digest = $4")
        .bind(revision)
        .bind(rows::number(change.epoch.0))
        .bind(change.digest.as_bytes())
        .bind(change.parent.as_bytes())
        .execute(&mut *connection)
        .await?;
    if moved.rows_affected() == 0 {
        return Ok(false);
    }
    let insert = query(
        "INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    );
    rows::bind_change(insert.bind(revision), change).execute(&mut *connection).await?;
    insert_writes(connection, &rows::WriteRow::of_change(change)).await?;
    for statement in [
        "UPDATE fleet_log SET documents = documents
         + (SELECT count(*) FROM fleet_writes w WHERE revision = $1 AND op <> 'remove'
            AND NOT EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))
         - (SELECT count(*) FROM fleet_writes w WHERE revision = $1 AND op = 'remove'
            AND EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))",
        "INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
         SELECT kind, id, revision, op, body, checksum FROM fleet_writes WHERE revision = $1 AND op <> 'remove'
         ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op, body = excluded.body,
         checksum = excluded.checksum",
        "DELETE FROM fleet_documents
         WHERE (kind, id) IN (SELECT kind, id FROM fleet_writes WHERE revision = $1 AND op = 'remove')",
    ] {
        query(statement).bind(revision).execute(&mut *connection).await?;
    }
    Ok(true)
}

/// All rows travel as one JSON array, so that a change of ten thousand writes takes as many statements as a change of
/// one.
pub(super) async fn insert_writes(connection: &mut Connection, rows: &[rows::WriteRow<'_>]) -> Result<(), StoreError> {
    let rows = serde_json::to_string(rows).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    query(
        "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
         SELECT value ->> 'revision', value ->> 'position', value ->> 'kind', value ->> 'id', value ->> 'op',
                value ->> 'body', value ->> 'checksum'
         FROM json_each($1)",
    )
    .bind(rows)
    .execute(connection)
    .await?;
    Ok(())
}
