//! The snapshot file, and backups that an operator restores.

use std::{fs, path::Path, process::Output, sync::Arc};

use model::Revision;
use serde_json::{Value, json};
use store::{SqliteStore, Store as _};
use tempfile::TempDir;

use crate::harness::{Server, block_on, command, repository};

const DEMO: &str = "demo-cluster-01.k8s.example.com";
const SNAPSHOT_FILE: (&str, &str) = ("SNAPSHOT_FILE", "snapshot");
const CRUD: (&str, &str) = ("API_MODE", "crud");

fn folder() -> Arc<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(repository("data/seed.json"), folder.path().join("seed.json")).unwrap();
    Arc::new(folder)
}

fn start(folder: &Arc<TempDir>) -> Server {
    Server::start_in(folder.clone(), &[CRUD, SNAPSHOT_FILE, ("SEED_FILE", "seed.json")])
}

/// Assigns one more namespace to the demo cluster.
fn assign_namespace(server: &Server, id: &str) {
    assert_eq!(server.post("/namespaces", &json!({"id": id})).status, 201);
    assert_eq!(server.put(&format!("/clusters/demo-cluster-01/namespaces/{id}"), &json!({})).status, 200);
}

/// The ids of the namespaces that the demo cluster gets, unless it gets an error.
fn polled_ids(server: &Server) -> Option<Vec<String>> {
    let answer = server.poll(DEMO, "namespaces");
    let ids = |answer: Value| {
        answer["inputs"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    (answer.status == 200).then(|| ids(answer.json()))
}

fn wait_for_store(server: &Server, status: &str) {
    let metric = match status {
        "diverged" => "\nflux_resourceset_store_diverged 1\n",
        _ => "\nflux_resourceset_store_up 1\n",
    };
    server.wait_until(&format!("its store is {status}"), || server.get_open("/metrics").body.contains(metric));
}

/// Runs the server's command on the default database of a folder.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).args(arguments).output().unwrap()
}

fn run_successfully(folder: &Path, arguments: &[&str]) {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_saved_snapshot_is_served_while_the_store_is_unavailable() {
    let folder = folder();
    let server = start(&folder);
    assign_namespace(&server, "one");
    let before = server.poll(DEMO, "namespaces").body;
    let database = server.database();
    drop(server);
    let moved = folder.path().join("moved");
    fs::rename(&database, &moved).unwrap();
    let settings = [CRUD, SNAPSHOT_FILE, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    let server = Server::start_in(folder.clone(), &settings);
    assert_eq!(server.poll(DEMO, "namespaces").body, before);
    assert_eq!(server.get_open("/ready").json()["store"], json!("unavailable"));
    let refused = server.post("/namespaces", &json!({"id": "two"}));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("store-unavailable")));
    let explained = server.get("/clusters/demo-cluster-01/explain/namespaces/podinfo").json();
    let without_change = json!({"kind": "namespace", "id": "podinfo", "revision": 1});
    assert_eq!(explained["fields"][0]["source"]["document"], without_change, "the change log cannot be read");
    fs::rename(&moved, &database).unwrap();
    wait_for_store(&server, "following");
    assign_namespace(&server, "two");
    assert_eq!(polled_ids(&server).unwrap().len(), 5);
}

#[test]
fn two_servers_cannot_share_a_snapshot_file() {
    let folder = folder();
    let _server = start(&folder);
    let output = command(folder.path()).env(SNAPSHOT_FILE.0, SNAPSHOT_FILE.1).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("SNAPSHOT_FILE snapshot: another server uses this file"), "{stderr}");
}

/// The power failed while a change was saved: it was not served before it was saved completely.
#[test]
fn a_change_that_was_not_saved_completely_was_not_served() {
    let folder = folder();
    let server = start(&folder);
    assign_namespace(&server, "one");
    assert_eq!(server.patch("/namespaces/one", &json!({"annotations": {"owner": "Jürgen"}})).status, 200);
    let database = server.database();
    drop(server);
    let file = folder.path().join("snapshot");
    let saved = fs::read(&file).unwrap();
    // In the middle of a character.
    let cut = saved.windows(2).rposition(|bytes| bytes == "ü".as_bytes()).unwrap();
    fs::write(&file, &saved[..=cut]).unwrap();
    fs::remove_file(database).unwrap();
    let settings = [SNAPSHOT_FILE, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    let server = Server::start_in(folder.clone(), &settings);
    assert_eq!(server.get_open("/ready").json()["revision"], json!(3), "the last change was not saved");
    assert_eq!(polled_ids(&server).unwrap().len(), 4);
    drop(server);
    // Without the lock file it is not known when the snapshot was last served.
    fs::remove_file(folder.path().join("snapshot.lock")).unwrap();
    for start in ["the first", "the second"] {
        let server = Server::launch(folder.clone(), &settings);
        server.wait_until("it is logged", || server.log().contains("it is not known when it was last served"));
        server.wait_until("the store was tried", || server.log().contains("the fleet is not loaded"));
        assert_eq!(polled_ids(&server), None, "{start} start");
    }
}

/// While it is down, other servers may serve more. That it starts again and again does not make its snapshot any newer.
#[test]
fn a_snapshot_that_is_too_old_stays_too_old_over_restarts() {
    let folder = folder();
    drop(start(&folder));
    fs::rename(folder.path().join("data"), folder.path().join("moved")).unwrap();
    let settings = [SNAPSHOT_FILE, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    for name in ["snapshot", "snapshot.lock"] {
        let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        file.set_modified(before - std::time::Duration::from_hours(2)).unwrap();
    }
    for start in ["the first", "the second", "the third"] {
        let server = Server::launch(folder.clone(), &settings);
        server.wait_until("it is logged", || server.log().contains("and SNAPSHOT_MAX_AGE is"));
        server.wait_until("the store was tried", || server.log().contains("the fleet is not loaded"));
        assert_eq!(polled_ids(&server), None, "{start} start");
    }
}

/// A time in the future means that the clock was set back, so it is not known how long the server was down.
#[test]
fn a_saved_snapshot_with_a_time_in_the_future_is_not_served() {
    let folder = folder();
    drop(start(&folder));
    fs::rename(folder.path().join("data"), folder.path().join("moved")).unwrap();
    let settings = [SNAPSHOT_FILE, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    assert!(polled_ids(&Server::start_in(folder.clone(), &settings)).is_some(), "unchanged, it is served");
    for name in ["snapshot", "snapshot.lock"] {
        let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        file.set_modified(before + std::time::Duration::from_hours(1)).unwrap();
        let server = Server::launch(folder.clone(), &settings);
        server.wait_until("it is logged", || server.log().contains("which is in the future"));
        assert_eq!(polled_ids(&server), None, "{name}");
        drop(server);
        file.set_modified(before).unwrap();
    }
}

/// No other user needs to read the documents of a fleet.
#[test]
fn files_of_the_server_are_readable_by_its_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = folder();
    let server = start(&folder);
    assign_namespace(&server, "one");
    run_successfully(folder.path(), &["backup", "backup"]);
    let files = ["", "-wal", "-shm"].map(|end| format!("data/flux-resourceset.db{end}"));
    for name in files.iter().map(String::as_str).chain(["snapshot", "snapshot.lock", "backup"]) {
        assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}");
    }
    // A file that an operator has opened for a group stays open for it, and so do the files next to it.
    let database = server.database();
    server.signal(nix::sys::signal::SIGTERM);
    assert!(server.wait().success());
    fs::set_permissions(&database, fs::Permissions::from_mode(0o640)).unwrap();
    let server = start(&folder);
    assign_namespace(&server, "two");
    for name in files {
        assert_eq!(mode(&folder.path().join(&name)), 0o640, "{name}");
    }
}

#[test]
fn a_known_fleet_is_not_seeded_again() {
    let folder = folder();
    let server = start(&folder);
    assign_namespace(&server, "one");
    let database = server.database();
    drop(server);
    fs::remove_file(database).unwrap();
    for (what, damage) in [("not used", Some("damaged")), ("the snapshot file is missing", None)] {
        match damage {
            Some(text) => fs::write(folder.path().join("snapshot"), text).unwrap(),
            None => fs::remove_file(folder.path().join("snapshot")).unwrap(),
        }
        let server = Server::start_in(folder.clone(), &[CRUD, SNAPSHOT_FILE, ("SEED_FILE", "seed.json")]);
        assert_eq!(server.get_open("/ready").json()["revision"], json!(0), "no seed");
        assert_eq!(server.poll(DEMO, "namespaces").status, 404);
        server.wait_until("it is logged", || server.log().contains(what));
    }
}

/// An operator may restore the store while the server runs.
#[test]
fn the_saved_snapshot_is_served_while_the_store_is_damaged() {
    let folder = folder();
    let server = start(&folder);
    let (before, database) = (polled_ids(&server), server.database());
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.wait().success());
    let intact = fs::read(&database).unwrap();
    fs::write(&database, vec![7; 8192]).unwrap();
    let server = Server::start_in(folder, &[CRUD, SNAPSHOT_FILE]);
    assert_eq!(polled_ids(&server), before);
    fs::write(&database, intact).unwrap();
    wait_for_store(&server, "following");
    assign_namespace(&server, "one");
}

#[test]
fn a_snapshot_of_another_fleet_is_not_served() {
    let (one, other) = (folder(), folder());
    drop(start(&one));
    drop(start(&other));
    fs::copy(other.path().join("snapshot"), one.path().join("snapshot")).unwrap();
    let server = Server::launch(one, &[CRUD, SNAPSHOT_FILE]);
    wait_for_store(&server, "diverged");
    assert_eq!(
        (polled_ids(&server), server.get_open("/ready").json()["code"].clone()),
        (None, json!("store-diverged"))
    );
    // Not even while the store is unavailable.
    let (database, moved) = (server.database(), server.folder().path().join("moved"));
    fs::rename(&database, &moved).unwrap();
    server.wait_until("it is detected", || server.get_open("/ready").json()["code"] == json!("not-ready"));
    assert_eq!(polled_ids(&server), None);
    fs::rename(&moved, &database).unwrap();
    wait_for_store(&server, "diverged");
    assert_eq!(polled_ids(&server), None);
}

/// While the server was stopped, the change log lost its last changes, grew beyond them and was pruned.
#[test]
fn a_restored_and_pruned_change_log_is_detected_as_diverged() {
    let folder = folder();
    let server = start(&folder);
    run_successfully(folder.path(), &["backup", "older"]);
    assign_namespace(&server, "one");
    assign_namespace(&server, "two");
    let (before, database) = (polled_ids(&server), server.database());
    drop(server);
    run_successfully(folder.path(), &["restore", "--replace", "older"]);
    let other = Server::start_in(folder.clone(), &[CRUD]);
    for id in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(other.post("/namespaces", &json!({"id": id})).status, 201);
    }
    drop(other);
    let dsn = format!("sqlite://{}?mode=rw", database.display()).parse().unwrap();
    block_on(async { SqliteStore::open(&dsn).await.unwrap().prune(Revision(6)).await.unwrap() });
    let server = start(&folder);
    wait_for_store(&server, "diverged");
    assert_eq!(polled_ids(&server), before);
    assert_eq!(
        server.get("/changes").json()["code"],
        json!("store-diverged"),
        "the history is not that of the served snapshot"
    );
}

/// A server whose snapshot is not the one that the operator reviewed goes on serving it.
#[test]
fn an_acceptance_is_followed_only_by_servers_of_the_reviewed_snapshot() {
    let folder = folder();
    let writer = start(&folder);
    run_successfully(folder.path(), &["backup", "older"]);
    assign_namespace(&writer, "one");
    let url = format!("sqlite://{}?mode=rwc", writer.database().display());
    let reader = Server::start(&[("DATABASE_URL", &url), SNAPSHOT_FILE]);
    let before = polled_ids(&reader);
    assert_eq!(before.as_ref().map(Vec::len), Some(4));
    drop(writer);
    run_successfully(folder.path(), &["restore", "--replace", "older"]);
    // This server has no snapshot file.
    let writer = Server::start_in(folder, &[CRUD]);
    assert_eq!(polled_ids(&writer).unwrap().len(), 3);
    wait_for_store(&reader, "diverged");
    let digest = writer.get("/store").json()["log"]["digest"].as_str().unwrap().to_owned();
    let accept = |more: &str| writer.post(&format!("/store/accept?expected_digest={digest}{more}"), &json!({}));
    let refused = accept("");
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("not-diverged")), "{}", refused.body);
    assert_eq!(accept(&format!("&served={digest}")).status, 200);
    reader.after_a_refresh();
    let store = reader.get("/store").json();
    assert_eq!(
        (polled_ids(&reader), &store["status"]),
        (before, &json!("diverged")),
        "the operator did not review what the clusters of this server would lose"
    );
    let log = store["log"]["digest"].as_str().unwrap();
    let served = store["picture"]["digest"].as_str().unwrap();
    let path = format!("/store/accept?expected_digest={log}&served={served}");
    let accepted = writer.write("POST", &path, &json!({}), &[("x-change-reason", "reviewed")]);
    assert_eq!((accepted.status, &accepted.json()["epoch"]), (200, &json!(2)), "{}", accepted.body);
    assert_eq!(accepted.headers["x-revision"], "3");
    let change = writer.get("/changes?limit=1").json();
    assert_eq!((&change[0]["overrules"], &change[0]["reason"]), (&json!(served), &json!("reviewed")));
    wait_for_store(&reader, "following");
    assert_eq!(polled_ids(&reader).unwrap().len(), 3);
}

#[test]
fn a_backup_is_complete_or_does_not_exist() {
    let folder = folder();
    let path = folder.path();
    assert!(refused(path, &["backup", "file"], 1).contains("No such file"), "a wrong address creates no store");
    assert!(!path.join("data").exists() && !path.join("file").exists());
    let server = start(&folder);
    assign_namespace(&server, "one");
    run_successfully(path, &["backup", "file"]);
    let piped = run(path, &["backup", "-"]);
    assert_eq!(piped.stdout, fs::read(path.join("file")).unwrap());
    assert_eq!(run(path, &["backup", "/dev/full"]).status.code(), Some(1));
    assert!(refused(path, &["backup", "missing/file"], 1).contains("missing"));
    let memory = command(path).args(["backup", "other"]).env("STORE_BACKEND", "memory").output().unwrap();
    assert_eq!(memory.status.code(), Some(2));
    // No incomplete file is left.
    let left: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter()
            .all(|name| ["seed.json", "data", "snapshot", "snapshot.lock", "file"].contains(&name.to_str().unwrap()))
    );

    assert!(refused(path, &["restore", "file"], 1).contains("the store has a log already"));
    assert!(
        refused(path, &["restore", "--replace", "seed.json"], 1)
            .contains("seed.json: it is not a backup of a change log")
    );
    fs::write(path.join("cut"), &piped.stdout[..piped.stdout.len() - 9]).unwrap();
    assert!(refused(path, &["restore", "--replace", "cut"], 1).contains("cut: it is cut short"));
    assert_eq!(polled_ids(&server).unwrap().len(), 4);
    // Into a new file, with the whole history.
    let copy = command(path)
        .args(["restore", "-"])
        .env("DATABASE_URL", "sqlite://copy.db?mode=rwc")
        .stdin(fs::File::open(path.join("file")).unwrap())
        .output()
        .unwrap();
    assert!(copy.status.success(), "{}", String::from_utf8_lossy(&copy.stderr));
    let copy = Server::start_in(folder.clone(), &[CRUD, ("DATABASE_URL", "sqlite://copy.db")]);
    assert_eq!(copy.poll(DEMO, "namespaces").body, server.poll(DEMO, "namespaces").body);
    assert_eq!(copy.get("/changes").json(), server.get("/changes").json());
}

#[test]
fn a_database_of_an_older_version_is_refused() {
    let folder = folder();
    fs::create_dir(folder.path().join("data")).unwrap();
    let file = folder.path().join("data/flux-resourceset.db");
    let older = "PRAGMA application_id = 0x66727331; CREATE TABLE changes (revision INTEGER)";
    rusqlite::Connection::open(&file).unwrap().execute_batch(older).unwrap();
    let stderr = refused(folder.path(), &[], 1);
    assert!(stderr.contains("the file was made by an older version of this program"), "{stderr}");
}
