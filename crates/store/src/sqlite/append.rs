//! Writing a change: into the log, and into the picture at its head.
//!
//! All statements of a change go to the database at once. Each by itself would wait for the thread on which SQLite works,
//! and together these waits would take longer than the commit. So what comes after the head was moved looks by itself
//! whether it was. All writes travel as one JSON array, so that a change of ten thousand takes as many statements as a
//! change of one.

use std::sync::LazyLock;

use model::Change;

use super::{Connection, query, rows};
use crate::StoreError;

/// Moves the head, where it is the one that the change was made for, and notes the change.
const CHANGE: &str = "
    UPDATE fleet_log SET head = :revision, epoch = :epoch, digest = :digest
    WHERE head = :revision - 1 AND digest = :parent;
    INSERT INTO fleet_changes (revision, epoch, overrules, parent, digest, at, actor, reason, request_id)
    SELECT :revision, :epoch, :overrules, :parent, :digest, :at, :actor, :reason, :request_id
    WHERE (SELECT digest FROM fleet_log) = :digest;";

/// Notes what it writes.
const WRITES: &str = "
    INSERT INTO fleet_writes (revision, position, kind, id, op, body, checksum)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(:writes)";

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
const COLUMNS: [&str; 10] =
    [":revision", ":epoch", ":overrules", ":parent", ":digest", ":at", ":actor", ":reason", ":request_id", ":writes"];

/// Writes a change and commits; says false, having done nothing, where it does not come directly after the head.
pub(super) async fn commit(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| format!("BEGIN IMMEDIATE;{}COMMIT;", script()));
    run(connection, change, &SCRIPT).await
}

/// The same within a transaction.
pub(super) async fn write(connection: &mut Connection, change: &Change) -> Result<bool, StoreError> {
    static SCRIPT: LazyLock<String> = LazyLock::new(script);
    run(connection, change, &SCRIPT).await
}

fn script() -> String {
    let text = format!("{CHANGE}{WRITES} WHERE (SELECT digest FROM fleet_log) = :digest;{COUNT}{PICTURE}{TELL}");
    let numbered = COLUMNS.iter().enumerate();
    numbered.fold(text, |text, (at, column)| text.replace(column, &format!("${}", at + 1)))
}

async fn run(connection: &mut Connection, change: &Change, script: &'static str) -> Result<bool, StoreError> {
    let script = rows::bind_change(query(script).bind(rows::number(change.revision.0)), change);
    let script = script.bind(json(&rows::WriteRow::of_change(change))?);
    // All of them, since what comes after the row that tells must be done too.
    let told = script.fetch_all(connection).await?;
    Ok(told.iter().map(|row| rows::column::<bool>(row, "moved")).collect::<Result<Vec<_>, _>>()? == [true])
}

fn json<'a>(rows: &'a [rows::WriteRow<'_>]) -> Result<String, StoreError> {
    let values = |row: &'a rows::WriteRow<'_>| {
        let rows::WriteRow { revision, position, kind, id, op, body, checksum } = row;
        (revision, position, kind, id, op, body.as_deref(), checksum)
    };
    serde_json::to_string(&rows.iter().map(values).collect::<Vec<_>>())
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) async fn insert_writes(connection: &mut Connection, rows: &[rows::WriteRow<'_>]) -> Result<(), StoreError> {
    static INSERT: LazyLock<String> = LazyLock::new(|| WRITES.replace(":writes", "$1"));
    query(INSERT.as_str()).bind(json(rows)?).execute(connection).await?;
    Ok(())
}
