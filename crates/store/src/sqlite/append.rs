//! Writes changes to the log, and to the documents at its head.

use model::{Change, Point};

use super::{
    Connection, log, query,
    rows::{self, WriteRow},
    run_blocking,
};
use crate::StoreError;

/// The statements that empty a log.
pub(super) const DELETE_ALL: &[&str] =
    &["DELETE FROM fleet_current", "DELETE FROM fleet_writes", "DELETE FROM fleet_changes", "DELETE FROM fleet_past"];

/// Makes every write the current document. There must be one write for each document.
pub(super) const INSERT_CURRENT: &str =
    "INSERT INTO fleet_current (kind, id, write) SELECT kind, id, number FROM fleet_writes";

/// Appends changes in a transaction of their own, all or none. If the first does not come directly after the head, nothing is
/// written and the head is returned.
pub(super) fn commit(connection: &mut Connection, changes: &[Change]) -> Result<Option<Point>, StoreError> {
    connection.run("BEGIN IMMEDIATE")?;
    if append_each(connection, changes)? {
        connection.run("COMMIT")?;
        return Ok(None);
    }
    connection.run("ROLLBACK")?;
    let head = |row: Result<_, _>| Ok(rows::bounds(&row?)?.head);
    query(log::SELECT_LOG).read(connection, |rows| rows.next().map(head).transpose())
}

/// Appends changes in the caller's transaction. Returns false if one does not come directly after the head; the caller then
/// rolls back.
pub(super) async fn append_all(connection: &mut Connection, changes: &[Change]) -> Result<bool, StoreError> {
    run_blocking(|| append_each(connection, changes))
}

/// The same, on this thread.
fn append_each(connection: &Connection, changes: &[Change]) -> Result<bool, StoreError> {
    for change in changes {
        if !append(connection, change)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn append(connection: &Connection, change: &Change) -> Result<bool, StoreError> {
    let revision = rows::to_i64(change.revision.0);
    let updated = query("UPDATE fleet_log SET head = $1, epoch = $2, digest = $3 WHERE head = $1 - 1 AND digest = $4")
        .bind(revision)
        .bind(rows::to_i64(change.epoch.0))
        .bind(change.digest.as_bytes())
        .bind(change.parent.as_bytes())
        .run(connection)?;
    if updated == 0 {
        return Ok(false);
    }
    let insert = query(
        "INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    );
    rows::bind_change(insert.bind(revision), change).run(connection)?;
    let mut added = 0;
    for (position, write) in change.writes.iter().enumerate() {
        let row = WriteRow::new(write, change.revision, position);
        let (kind, id, op) = (row.kind, row.id, row.op);
        insert_write(connection, row)?;
        let current = |text| query(text).bind(kind).bind(id);
        added += if op == "remove" {
            -count(current("DELETE FROM fleet_current WHERE kind = $1 AND id = $2").run(connection)?)
        } else if current("UPDATE fleet_current SET write = last_insert_rowid() WHERE kind = $1 AND id = $2")
            .run(connection)?
            == 0
        {
            let insert = "INSERT INTO fleet_current (kind, id, write) VALUES ($1, $2, last_insert_rowid())";
            count(current(insert).run(connection)?)
        } else {
            0
        };
    }
    if added != 0 {
        query("UPDATE fleet_log SET documents = documents + $1").bind(added).run(connection)?;
    }
    Ok(true)
}

fn count(rows: usize) -> i64 {
    rows::to_i64(rows as u64)
}

fn insert_write(connection: &Connection, row: WriteRow<'_>) -> Result<(), StoreError> {
    let WriteRow { revision, position, kind, id, op, body, checksum } = row;
    query(
        "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(revision)
    .bind(position)
    .bind(kind)
    .bind(id)
    .bind(op)
    .bind(body)
    .bind(checksum)
    .run(connection)?;
    Ok(())
}

/// Inserts writes of restored documents, without changes.
pub(super) async fn insert_writes(connection: &mut Connection, rows: Vec<WriteRow<'_>>) -> Result<(), StoreError> {
    run_blocking(|| rows.into_iter().try_for_each(|row| insert_write(connection, row)))
}
