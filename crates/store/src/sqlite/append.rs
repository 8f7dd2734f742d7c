//! Writing a change: into the log, and into the picture at its head.
//!
//! Each statement is a message to the thread on which SQLite works and one back, and for a handful of them these would take
//! longer than the commit. So all that a write needs stands in a trigger, which every connection that writes brings along.
//! Changes of a few documents are one statement: it is done as a whole, durably, or not at all.

use std::sync::OnceLock;

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

        UPDATE fleet_log SET documents = documents + iif(NEW.op = 'remove', -1, 1) WHERE NEW.kind IS NOT NULL
        AND (NEW.op = 'remove') = EXISTS (SELECT 1 FROM fleet_documents WHERE kind = NEW.kind AND id = NEW.id);

        INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
        SELECT NEW.kind, NEW.id, NEW.revision, NEW.op, NEW.body, NEW.checksum WHERE NEW.op <> 'remove'
        ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op, body = excluded.body,
        checksum = excluded.checksum;

        DELETE FROM fleet_documents WHERE NEW.op = 'remove' AND kind = NEW.kind AND id = NEW.id;
    END;";

/// How many rows a statement takes: enough to forget the messages, and few enough that polls are answered meanwhile.
const ROWS: usize = 25;

/// The statements that insert up to so many rows.
static INSERTS: [OnceLock<String>; ROWS + 1] = [const { OnceLock::new() }; ROWS + 1];

fn insert(rows: usize) -> &'static str {
    const COLUMNS: usize = 15;
    INSERTS[rows.min(ROWS)].get_or_init(|| {
        let row = format!("({})", vec!["?"; COLUMNS].join(", "));
        format!(
            "INSERT INTO fleet_append (revision, epoch, overrules, parent, digest, at, actor, reason, request_id,
             position, kind, id, op, body, checksum) VALUES {}",
            vec![row; rows.min(ROWS)].join(", ")
        )
    })
}

/// A row for the view: a write of a change, at its position; or that a change writes nothing.
type Row<'a> = (&'a Change, usize, Option<&'a Write>);

/// Writes changes; says false, having done nothing, where the first does not come directly after the head.
pub(super) async fn write(connection: &mut Connection, changes: &[Change]) -> Result<bool, StoreError> {
    let rows: Vec<_> = changes.iter().flat_map(rows_of).collect();
    let mut pieces = rows.chunks(ROWS);
    let Some(first) = pieces.next() else { return Ok(true) };
    if pieces.len() == 0 {
        return append(connection, first).await;
    }
    sqlx::raw_sql("SAVEPOINT changes").execute(&mut *connection).await?;
    let follows = append(connection, first).await?;
    if follows {
        for piece in pieces {
            // What is missing a piece must not stay; whoever began the transaction gives it up.
            if !append(connection, piece).await? {
                return Err(StoreError::Unavailable("it did not take all of a change".to_owned()));
            }
        }
    }
    sqlx::raw_sql("RELEASE changes").execute(&mut *connection).await?;
    Ok(follows)
}

fn rows_of(change: &Change) -> impl Iterator<Item = Row<'_>> {
    let nothing = change.writes.is_empty().then_some((change, 0, None));
    change.writes.iter().enumerate().map(move |(position, write)| (change, position, Some(write))).chain(nothing)
}

/// Inserts rows; says false if they do not follow on the head.
async fn append(connection: &mut Connection, rows: &[Row<'_>]) -> Result<bool, StoreError> {
    let insert = rows.iter().fold(query(insert(rows.len())), |insert, (change, position, write)| {
        let insert = insert.bind(rows::number(change.revision.0));
        // The first row of a change says all that is known of it.
        let insert = if *position == 0 { rows::bind_change(insert, change) } else { bind_nothing(insert, 8) };
        match write {
            Some(write) => bind_write(insert, rows::WriteRow::of(write, change.revision, *position)),
            None => bind_nothing(insert.bind(0), 5),
        }
    });
    match insert.execute(connection).await {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error)) if is_refused(error.downcast_ref()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn bind_nothing(query: Query<'_>, columns: usize) -> Query<'_> {
    (0..columns).fold(query, |query, _| query.bind(None::<&str>))
}

/// Whether it was the trigger that did not want it.
fn is_refused(error: &SqliteError) -> bool {
    const CONSTRAINT_TRIGGER: &str = "1811";
    error.code().is_some_and(|code| code == CONSTRAINT_TRIGGER)
}

fn bind_write<'q>(query: Query<'q>, row: rows::WriteRow<'q>) -> Query<'q> {
    let rows::WriteRow { position, kind, id, op, body, checksum, .. } = row;
    query.bind(position).bind(kind).bind(id).bind(op).bind(body).bind(checksum)
}

/// Writes what changes once wrote, and nothing else.
pub(super) async fn insert_writes(
    connection: &mut Connection,
    rows: Vec<rows::WriteRow<'_>>,
) -> Result<(), StoreError> {
    for row in rows {
        let insert = query(
            "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        bind_write(insert.bind(row.revision), row).execute(&mut *connection).await?;
    }
    Ok(())
}
