//! Writing a change: into the log, and into the picture at its head.

use model::{Change, Point};

use super::{
    Connection, aside, log, query,
    rows::{self, WriteRow},
};
use crate::StoreError;

/// What makes a log empty.
pub(super) const CLEAR: &[&str] =
    &["DELETE FROM fleet_current", "DELETE FROM fleet_writes", "DELETE FROM fleet_changes", "DELETE FROM fleet_past"];

/// What makes a picture of writes, of which there is one for each document.
pub(super) const PICTURE: &str =
    "INSERT INTO fleet_current (kind, id, write) SELECT kind, id, number FROM fleet_writes";

/// Makes changes durable, all or none; answers the head where the first does not come directly after it.
pub(super) fn commit(connection: &mut Connection, changes: &[Change]) -> Result<Option<Point>, StoreError> {
    connection.run("BEGIN IMMEDIATE")?;
    if append_all(connection, changes)? {
        connection.run("COMMIT")?;
        return Ok(None);
    }
    connection.run("ROLLBACK")?;
    let head = |row: Result<_, _>| Ok(rows::ends(&row?)?.head);
    query(log::LOG).read(connection, |rows| rows.next().map(head).transpose())
}

/// Writes changes, one after another; says false where one does not come directly after the head, and whoever began the
/// transaction gives it up.
pub(super) async fn write(connection: &mut Connection, changes: &[Change]) -> Result<bool, StoreError> {
    aside(|| append_all(connection, changes))
}

/// The same, on this thread.
fn append_all(connection: &Connection, changes: &[Change]) -> Result<bool, StoreError> {
    for change in changes {
        if !append(connection, change)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn append(connection: &Connection, change: &Change) -> Result<bool, StoreError> {
    let revision = rows::number(change.revision.0);
    let moved = query("UPDATE fleet_log SET head = $1, epoch = $2, digest = $3 WHERE head = $1 - 1 AND digest = $4")
        .bind(revision)
        .bind(rows::number(change.epoch.0))
        .bind(change.digest.as_bytes())
        .bind(change.parent.as_bytes())
        .run(connection)?;
    if moved == 0 {
        return Ok(false);
    }
    let insert = query(
        "INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    );
    rows::bind_change(insert.bind(revision), change).run(connection)?;
    let mut more = 0;
    for (position, write) in change.writes.iter().enumerate() {
        let row = WriteRow::of(write, change.revision, position);
        let (kind, id, op) = (row.kind, row.id, row.op);
        insert_write(connection, row)?;
        let current = |text| query(text).bind(kind).bind(id);
        more += if op == "remove" {
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
    if more != 0 {
        query("UPDATE fleet_log SET documents = documents + $1").bind(more).run(connection)?;
    }
    Ok(true)
}

fn count(rows: usize) -> i64 {
    rows::number(rows as u64)
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

/// Writes what changes once wrote, and nothing else.
pub(super) async fn insert_writes(connection: &mut Connection, rows: Vec<WriteRow<'_>>) -> Result<(), StoreError> {
    aside(|| rows.into_iter().try_for_each(|row| insert_write(connection, row)))
}
