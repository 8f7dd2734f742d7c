//! What a file adds to the promise: it outlives the process, it is shared between processes, and damage is found.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use model::{Body, Change, Id, Op, Origin, Revision, Write};
use store::{AppendError, SqliteDsn, SqliteStore, Store as _, StoreError};

fn dsn(file: &Path, mode: &str) -> SqliteDsn {
    format!("sqlite://{}?mode={mode}", file.display()).parse().unwrap()
}

/// Appends one more change.
async fn append(store: &SqliteStore, id: &str) -> Result<Revision, AppendError> {
    append_all(store, &[id]).await
}

async fn append_all(store: &SqliteStore, ids: &[&str]) -> Result<Revision, AppendError> {
    let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
    let put = |id: &&str| {
        let op = Op::Put(Body::from_text(r#"{"a":"b"}"#));
        Write { kind: "namespace".into(), id: Id::parse(id).unwrap(), op }
    };
    let writes = ids.iter().map(put).collect();
    let head = store.bounds().await?.head;
    let change = Change::after(&head, origin, writes);
    store.append(&change).await?;
    Ok(change.revision)
}

fn sql(file: &Path, statement: &str) {
    rusqlite::Connection::open(file).unwrap().execute_batch(statement).unwrap();
}

#[tokio::test]
async fn a_log_outlives_its_process_and_its_folder_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/er/log.db");
    let store = SqliteStore::open(&dsn(&file, "rwc")).await.unwrap();
    append(&store, "a").await.unwrap();
    drop(store);
    let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
    assert_eq!(store.load().await.unwrap().documents.len(), 1);
}

#[tokio::test]
async fn a_change_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dsn(&folder.path().join("log.db"), "rwc")).await.unwrap();
    append(&store, "a").await.unwrap();
    let ids: Vec<_> = (0..60).map(|at| format!("n{at}")).collect();
    // One document twice, at the end: all writes before it were executed.
    let mut twice: Vec<_> = ids.iter().map(String::as_str).collect();
    twice.push("n0");
    assert!(matches!(append_all(&store, &twice).await, Err(AppendError::Store(_))));
    assert_eq!(store.load().await.unwrap().documents.len(), 1);
    twice.pop();
    append_all(&store, &twice).await.expect("the failed change has left nothing");
    assert_eq!(store.load().await.unwrap().documents.len(), 61);
}

#[tokio::test]
async fn a_missing_file_is_not_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    let error = SqliteStore::open(&dsn(&file, "rw")).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_reader_sees_the_changes_of_another_process_and_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    let writer = SqliteStore::open(&dsn(&file, "rwc")).await.unwrap();
    let reader = SqliteStore::open(&dsn(&file, "ro")).await.unwrap();
    append(&writer, "a").await.unwrap();
    let seen = async {
        while reader.changes_after(Revision::ZERO, 1).await.unwrap().changes.is_empty() {
            reader.wait_for_append().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), seen).await.expect("within a second");
    assert!(append(&reader, "b").await.is_err());
}

/// A file of a few hundred pages, closed, with everything in the main file.
async fn filled(file: &Path) {
    let store = SqliteStore::open(&dsn(file, "rwc")).await.unwrap();
    for at in 1..=300 {
        append(&store, &format!("n{at}")).await.unwrap();
    }
    drop(store);
    sql(file, "PRAGMA wal_checkpoint(TRUNCATE)");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let intact = folder.path().join("intact.db");
    filled(&intact).await;
    let intact = fs::read(&intact).unwrap();

    let mut no_database = intact.clone();
    no_database[..16].fill(b'x');
    let mut torn_pages = intact.clone();
    for page in torn_pages.chunks_mut(4096).skip(1) {
        page.fill(0xab);
    }
    let cut_short = intact[..4096 * 2].to_vec();
    for (name, bytes) in [("no_database", no_database), ("torn_pages", torn_pages), ("cut_short", cut_short)] {
        let file = folder.path().join(name);
        fs::write(&file, &bytes).unwrap();
        let result = match SqliteStore::open(&dsn(&file, "rwc")).await {
            Ok(store) => store.load().await.map(|fleet| fleet.documents.len()),
            Err(error) => Err(error),
        };
        assert!(matches!(result, Err(StoreError::Corrupt(_))), "{name}: {result:?}");
        assert!(fs::read(&file).unwrap() == bytes, "{name} was touched");
    }
}

#[tokio::test]
async fn damage_that_sqlite_does_not_see_is_found() {
    for statement in [
        "UPDATE fleet_writes SET body = replace(body, 'b', 'c') WHERE id = 'n7'",
        "UPDATE fleet_writes SET id = 'n999' WHERE id = 'n7'",
        "DELETE FROM fleet_writes WHERE id = 'n7'",
        "DELETE FROM fleet_current WHERE id = 'n7'",
        "UPDATE fleet_current SET id = 'n999' WHERE id = 'n7'",
        "UPDATE fleet_current SET write = write + 1 WHERE id = 'n7'",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.db");
        filled(&file).await;
        sql(&file, statement);
        let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
        let result = store.load().await;
        assert!(matches!(result, Err(StoreError::Corrupt(_))), "{statement}: {result:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    filled(&file).await;
    sql(&file, "DELETE FROM fleet_writes WHERE revision = 7");
    sql(&file, "DELETE FROM fleet_changes WHERE revision = 7");
    let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
    let result = store.changes_after(Revision(3), 10).await;
    assert!(matches!(result, Err(StoreError::Corrupt(_))), "a gap in the log: {result:?}");
}

#[tokio::test]
async fn a_file_of_another_program_or_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.db");
    fs::write(&file, "").unwrap();
    sql(&file, "CREATE TABLE songs (title TEXT)");
    let bytes = fs::read(&file).unwrap();
    let error = SqliteStore::open(&dsn(&file, "rwc")).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign(_)), "{error}");
    assert_eq!(fs::read(&file).unwrap(), bytes);

    let file = folder.path().join("newer.db");
    filled(&file).await;
    sql(&file, "INSERT INTO fleet_schema (version) VALUES (99)");
    let error = SqliteStore::open(&dsn(&file, "rwc")).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign(_)), "{error}");
}

/// Turns the tables into those of the first version.
const FIRST_TABLES: &str = "
    BEGIN;
    CREATE TEMP TABLE writes AS SELECT * FROM fleet_writes;
    CREATE TEMP TABLE documents AS SELECT * FROM fleet_documents;
    CREATE TEMP TABLE changes AS SELECT * FROM fleet_changes;
    CREATE TEMP TABLE log AS SELECT * FROM fleet_log;
    DROP VIEW fleet_documents;
    DROP TABLE fleet_current;
    DROP TABLE fleet_writes;
    DROP TABLE fleet_changes;
    DROP TABLE fleet_past;
    DROP TABLE main.fleet_log;
    DELETE FROM fleet_schema WHERE version > 1;";
const FIRST_ROWS: &str = "
    INSERT INTO fleet_log SELECT * FROM log;
    INSERT INTO fleet_changes SELECT * FROM changes;
    INSERT INTO fleet_writes SELECT revision, position, kind, id, op, body, checksum FROM writes ORDER BY id;
    INSERT INTO fleet_documents SELECT kind, id, revision, op, body, checksum FROM documents;
    COMMIT;";

#[tokio::test]
async fn a_file_with_the_first_tables_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    let store = SqliteStore::open(&dsn(&file, "rwc")).await.unwrap();
    for ids in [&["a", "b"][..], &["b"], &["c", "a"]] {
        append_all(&store, ids).await.unwrap();
    }
    let (fleet, batch) = (store.load().await.unwrap(), store.changes_after(Revision::ZERO, 10).await.unwrap());
    store.close().await;
    drop(store);
    sql(&file, &format!("{FIRST_TABLES}{}{FIRST_ROWS}", include_str!("../migrations/sqlite/0001_log.sql")));
    let error = SqliteStore::open(&dsn(&file, "ro")).await.unwrap_err();
    assert!(error.is_transient(), "a reader waits until a writer has migrated the tables: {error}");

    let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
    assert_eq!(store.load().await.unwrap(), fleet);
    assert_eq!(store.changes_after(Revision::ZERO, 10).await.unwrap(), batch);
    append(&store, "b").await.unwrap();
    assert_eq!(store.load().await.unwrap().documents.len(), 3);
    let at_first = store.load_at(Revision(1)).await.unwrap();
    assert_eq!(at_first.documents.len(), 2);
}

#[tokio::test]
async fn a_vacuum_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    filled(&file).await;
    let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
    let fleet = store.load().await.unwrap();
    store.prune(Revision(200)).await.unwrap();
    store.close().await;
    drop(store);
    sql(&file, "VACUUM");
    let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
    assert_eq!(store.load().await.unwrap(), fleet);
}

/// Not a test of its own: the process that the test below kills. It appends and prints each acknowledged revision.
#[tokio::test]
async fn appender() {
    let Ok(file) = std::env::var("APPEND_TO") else { return };
    let store = SqliteStore::open(&dsn(Path::new(&file), "rwc")).await.unwrap();
    let from = store.load().await.unwrap().point.revision.0;
    for at in from + 1.. {
        let revision = append(&store, &format!("n{at}")).await.unwrap();
        writeln!(std::io::stdout(), "acknowledged {revision}").unwrap();
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_writer_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    for round in 1..=10 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "appender", "--nocapture"])
            .env("APPEND_TO", &file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut acknowledged = lines.by_ref().map_while(Result::ok).filter_map(|line| printed_revision(&line));
        let last = acknowledged.by_ref().nth(round * 3).unwrap();
        writer.kill().unwrap();
        // What it printed before it was killed counts too.
        let last = acknowledged.last().unwrap_or(last);
        writer.wait().unwrap();

        let store = SqliteStore::open(&dsn(&file, "rw")).await.unwrap();
        let batch = store.changes_after(Revision::ZERO, 1_000_000).await.unwrap();
        assert!(batch.head.revision.0 >= last, "revision {last} was acknowledged, the log ends at {}", batch.head);
        assert_eq!(u64::try_from(batch.changes.len()).unwrap(), batch.head.revision.0, "the log has no gap");
        assert_eq!(store.load().await.unwrap().documents.len(), batch.changes.len());
    }
}

fn printed_revision(line: &str) -> Option<u64> {
    line.split_once("acknowledged ")?.1.parse().ok()
}
