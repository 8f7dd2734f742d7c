//! Writing a change: into the log, and into the picture at its head.
//!
//! Each statement is a message to the thread on which SQLite works and one back, and for a handful of them these would take
//! longer than the commit. So all that a write needs stands in a trigger, which every connection that writes brings along.
//! A change of one document is one statement: it is done as a whole, durably, or not at all.

use std::sync::LazyLock;

use model::{Change, Write};
use sqlx::error::DatabaseError as _;

use super::{Connection, Query, SqliteError, query, rows};
use crate::StoreError;

/// What a connection needs that writes. Who inserts the writes of a change into this view, each with all that is known of
/// the change, appends it; a change that writes nothing is one row without a document.
pub(super) const TRIGGER: &str = "
    CREATE TEMP VIEW fleet_append AS
    SELECT c.*, w.position, w.kind, w.id, w.op, w.body, w.checksum FROM main.fleet_changes c, main.fleet_writes w;

    CREATE TEMP TRIGGER fleet_append INSTEAD OF INSERT ON fleet_append BEGIN
        SELECT RAISE(ABORT, 'the head is elsewhere') WHERE NEW.position = 0
        AND NOT EXISTS (SELECT 1 FROM fleet_log WHERE head = NEW.revision - 1 AND digest = NEW.parent);

        UPDATE fleet_log SET head = NEW.revision, epoch = NEW.epoch, digest = NEW.digest WHERE NEW.position = 0;

        INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
        SELECT NEW.revision, NEW.epoch, NEW.overrules, NEW.parent, NEW.digest, NEW.at, NEW.actor, NEW.reason,
            NEW.request_id WHERE NEW.position = 0;

        INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
        SELECT NEW.revision, NEW.position, NEW.kind, NEW.id, NEW.op, NEW.body, NEW.checksum WHERE NEW.kind IS NOT NULL;

        UPDATE fleet_log SET documents = documents + (NEW.op <> 'remove')
        - EXISTS (SELECT 1 FROM fleet_documents WHERE kind = NEW.kind AND id = NEW.id) WHERE NEW.kind IS NOT NULL;

        INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
        SELECT NEW.kind, NEW.id, NEW.revision, NEW.op, NEW.body, NEW.checksum WHERE NEW.op <> 'remove'
        ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op, body = excluded.body,
        checksum = excluded.checksum;

        DELETE FROM fleet_documents WHERE NEW.op = 'remove' AND kind = NEW.kind AND id = NEW.id;
    END;";

/// Inserts one write, and several.
static ONE: LazyLock<String> = LazyLock::new(|| insert(1));
static SEVERAL: LazyLock<String> = LazyLock::new(|| insert(ROWS));

/// How many are several: enough to forget the messages, and few enough that polls are answered meanwhile.
const ROWS: usize = 25;

/// Nine parameters say what is known of the change, and six each write.
fn insert(writes: usize) -> String {
    let row = |write: usize| {
        let numbers = (1..=9).chain((10..16).map(|column| column + 6 * write));
        format!("({})", numbers.map(|number| format!("${number}")).collect::<Vec<_>>().join(", "))
    };
    format!(
        "INSERT INTO fleet_append (revision, epoch, overrules, parent, digest, at, actor, reason, request_id,
         position, kind, id, op, body, checksum) VALUES {}",
        (0..writes).map(row).collect::<Vec<_>>().join(", ")
    )
}

/// Writes a change; says false, having done nothing, where it does not come directly after the head.
pub(super) async fn write(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    let (first, others) = pieces(&change.writes);
    if others.is_empty() {
        return append(connection, change, 0, first).await;
    }
    sqlx::raw_sql("SAVEPOINT change").execute(&mut *connection).await?;
    let follows = append(connection, change, 0, first).await?;
    if follows {
        let mut position = first.len();
        for piece in others {
            // What is missing a piece must not stay; whoever began the transaction gives it up.
            if !append(connection, change, position, piece).await? {
                return Err(StoreError::Unavailable(format!("it did not take all of change {}", change.revision)));
            }
            position += piece.len();
        }
    }
    sqlx::raw_sql("RELEASE change").execute(&mut *connection).await?;
    Ok(follows)
}

/// The writes of a change, in pieces that a statement takes: the first one, and all others.
fn pieces(writes: &[Write]) -> (&[Write], Vec<&[Write]>) {
    let several = writes.chunks_exact(ROWS);
    let mut all = several.clone().chain(several.remainder().chunks(1));
    (all.next().unwrap_or_default(), all.collect())
}

/// Inserts a piece of a change; says false if it does not follow on the head.
async fn append(
    connection: &mut Connection,
    change: &Change,
    position: usize,
    writes: &[Write],
) -> Result<bool, StoreError> {
    let insert = if writes.len() > 1 { &SEVERAL } else { &ONE };
    let insert = rows::bind_change(query(insert.as_str()).bind(rows::number(change.revision.0)), change);
    let rows = rows::WriteRow::of(writes, (position..).map(|position| (change.revision, position)));
    let mut insert = rows.iter().fold(insert, bind_write);
    if rows.is_empty() {
        insert = insert.bind(0).bind(None::<&str>).bind(None::<&str>).bind(None::<&str>).bind(None::<&str>).bind(0);
    }
    match insert.execute(connection).await {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error)) if is_refused(error.downcast_ref()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether it was the trigger that did not want it.
fn is_refused(error: &SqliteError) -> bool {
    const CONSTRAINT_TRIGGER: &str = "1811";
    error.code().is_some_and(|code| code == CONSTRAINT_TRIGGER)
}

fn bind_write<'q>(query: Query<'q>, row: &'q rows::WriteRow<'_>) -> Query<'q> {
    let rows::WriteRow { position, kind, id, op, body, checksum, .. } = row;
    query.bind(position).bind(*kind).bind(*id).bind(*op).bind(body.as_deref()).bind(checksum)
}

/// Writes what changes once wrote, and nothing else.
pub(super) async fn insert_writes(connection: &mut Connection, rows: &[rows::WriteRow<'_>]) -> Result<(), StoreError> {
    for row in rows {
        let insert = query(
            "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        bind_write(insert.bind(row.revision), row).execute(&mut *connection).await?;
    }
    Ok(())
}
