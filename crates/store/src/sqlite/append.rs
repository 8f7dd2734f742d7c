//! Writing a change: into the log, and into the picture at its head.
//!
//! All statements of a change go to the database at once. Each by itself would wait for the thread on which SQLite works,
//! and together these waits would take longer than the commit. So what comes after the head was moved looks by itself
//! whether it was.

use model::Change;
use sqlx::AssertSqlSafe;

use super::{Connection, Query, query, rows};
use crate::StoreError;

/// Moves the head, where it is the one that the change was made for, and notes the change.
const CHANGE: &str = "
    UPDATE fleet_log SET head = :revision, epoch = :epoch, digest = :digest
    WHERE head = :revision - 1 AND digest = :parent;
    INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
    SELECT :revision, :epoch, :overrules, :parent, :digest, :at, :actor, :reason, :request_id
    WHERE (SELECT digest FROM fleet_log) = :digest;";

/// Counts the documents that come and go.
const COUNT: &str = "
    UPDATE fleet_log SET documents = documents
    + (SELECT count(*) FROM fleet_writes w WHERE revision = :revision AND op <> 'remove'
       AND NOT EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))
    - (SELECT count(*) FROM fleet_writes w WHERE revision = :revision AND op = 'remove'
       AND EXISTS (SELECT 1 FROM fleet_documents d WHERE d.kind = w.kind AND d.id = w.id))
    WHERE digest = :digest;";

/// Brings the picture to the head.
const PICTURE: &str = "
    INSERT INTO fleet_documents (kind, id, revision, op, body, checksum)
    SELECT kind, id, revision, op, body, checksum FROM fleet_writes
    WHERE revision = :revision AND op <> 'remove' AND (SELECT digest FROM fleet_log) = :digest
    ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, op = excluded.op, body = excluded.body,
    checksum = excluded.checksum;
    DELETE FROM fleet_documents WHERE (SELECT digest FROM fleet_log) = :digest
    AND (kind, id) IN (SELECT kind, id FROM fleet_writes WHERE revision = :revision AND op = 'remove');";

/// Tells whether the head is at the change now.
const TELL: &str = "SELECT digest = :digest AS moved FROM fleet_log;";

/// The columns of a change, in the order in which they are bound.
const COLUMNS: [&str; 9] =
    [":revision", ":epoch", ":overrules", ":parent", ":digest", ":at", ":actor", ":reason", ":request_id"];

/// The columns of a write.
const WIDTH: usize = 7;

/// How many writes go into one statement: a statement takes 32,766 values.
const CHUNK: usize = 1_000;

/// Writes a change and commits; says false, having done nothing, where it does not come directly after the head.
pub(super) async fn commit(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    run(connection, change, "BEGIN IMMEDIATE;", "COMMIT;").await
}

/// The same within a transaction.
pub(super) async fn write(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    run(connection, change, "", "").await
}

async fn run(connection: &mut Connection, change: &Change, before: &str, after: &str) -> Result<bool, StoreError> {
    let rows = rows::WriteRow::of_change(change);
    let condition = "WHERE (SELECT digest FROM fleet_log) = :digest";
    let text = format!("{before}{CHANGE}{}{COUNT}{PICTURE}{TELL}{after}", inserts(rows.len(), condition));
    // The values of the writes come first, in their order; those of the change have numbers.
    let number = |at: usize| format!("${}", rows.len() * WIDTH + at + 1);
    let text = COLUMNS.iter().enumerate().fold(text, |text, (at, column)| text.replace(column, &number(at)));
    let script = rows.iter().fold(query(AssertSqlSafe(text)).persistent(rows.len() == 1), bind_row);
    let script = rows::bind_change(script.bind(rows::number(change.revision.0)), change);
    // All of them, since what comes after the row that tells must be done too.
    let told = script.fetch_all(connection).await?;
    Ok(told.iter().map(|row| rows::column::<bool>(row, "moved")).collect::<Result<Vec<_>, _>>()? == [true])
}

/// Statements that insert so many writes.
fn inserts(rows: usize, condition: &str) -> String {
    let all = vec!["(?, ?, ?, ?, ?, ?, ?)"; rows];
    let insert = |rows: &[&str]| {
        format!(
            "INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
             SELECT * FROM (VALUES {}) {condition};",
            rows.join(", ")
        )
    };
    all.chunks(CHUNK).map(insert).collect()
}

fn bind_row<'q>(query: Query<'q>, row: &rows::WriteRow<'q>) -> Query<'q> {
    let rows::WriteRow { revision, position, kind, id, op, body, checksum } = *row;
    query.bind(revision).bind(position).bind(kind).bind(id).bind(op).bind(body).bind(checksum)
}

pub(super) async fn insert_writes(connection: &mut Connection, rows: &[rows::WriteRow<'_>]) -> Result<(), StoreError> {
    let script = query(AssertSqlSafe(inserts(rows.len(), ""))).persistent(false);
    rows.iter().fold(script, bind_row).execute(connection).await?;
    Ok(())
}
