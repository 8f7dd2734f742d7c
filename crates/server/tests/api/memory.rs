//! What a server remembers of what it served, and what an operator can put back.

use std::{fs, path::Path, process::Output, sync::Arc};

use model::Revision;
use serde_json::{Value, json};
use store::{SqliteStore, Store as _};
use tempfile::TempDir;

use crate::harness::{Server, block_on, command, repository};

const DEMO: &str = "demo-cluster-01.k8s.example.com";
const KEPT: (&str, &str) = ("SNAPSHOT_FILE", "kept");
const CRUD: (&str, &str) = ("API_MODE", "crud");

fn folder() -> Arc<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(repository("data/seed.json"), folder.path().join("seed.json")).unwrap();
    Arc::new(folder)
}

fn start(folder: &Arc<TempDir>) -> Server {
    Server::start_in(folder.clone(), &[CRUD, KEPT, ("SEED_FILE", "seed.json")])
}

/// Gives the demo cluster one more namespace.
fn give(server: &Server, id: &str) {
    assert_eq!(server.post("/namespaces", &json!({"id": id})).status, 201);
    assert_eq!(server.put(&format!("/clusters/demo-cluster-01/namespaces/{id}"), &json!({})).status, 200);
}

/// The ids that the demo cluster is told, if it is told any.
fn told(server: &Server) -> Option<Vec<String>> {
    let answer = server.poll(DEMO, "namespaces");
    let ids = |answer: Value| {
        answer["inputs"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    (answer.status == 200).then(|| ids(answer.json()))
}

fn store_is(server: &Server, status: &str) {
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

fn must(folder: &Path, arguments: &[&str]) {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_was_served_is_served_while_the_store_is_away() {
    let folder = folder();
    let server = start(&folder);
    give(&server, "one");
    let before = server.poll(DEMO, "namespaces").body;
    let database = server.database();
    drop(server);
    let aside = folder.path().join("aside");
    fs::rename(&database, &aside).unwrap();
    let settings = [CRUD, KEPT, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    let server = Server::start_in(folder.clone(), &settings);
    assert_eq!(server.poll(DEMO, "namespaces").body, before);
    assert_eq!(server.get_open("/ready").json()["store"], json!("unavailable"));
    let refused = server.post("/namespaces", &json!({"id": "two"}));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("store-unavailable")));
    fs::rename(&aside, &database).unwrap();
    store_is(&server, "following");
    give(&server, "two");
    assert_eq!(told(&server).unwrap().len(), 5);
}

#[test]
fn two_servers_do_not_share_a_memory() {
    let folder = folder();
    let _server = start(&folder);
    let output = command(folder.path()).env(KEPT.0, KEPT.1).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("SNAPSHOT_FILE kept: another server keeps its picture there"), "{told}");
}

/// The picture was being kept when the power went: what was not kept whole was not served.
#[test]
fn a_change_that_was_not_kept_whole_was_not_served() {
    let folder = folder();
    let server = start(&folder);
    give(&server, "one");
    assert_eq!(server.patch("/namespaces/one", &json!({"annotations": {"owner": "Jürgen"}})).status, 200);
    let database = server.database();
    drop(server);
    let file = folder.path().join("kept");
    let kept = fs::read(&file).unwrap();
    // In the middle of a character.
    let cut = kept.windows(2).rposition(|bytes| bytes == "ü".as_bytes()).unwrap();
    fs::write(&file, &kept[..=cut]).unwrap();
    fs::remove_file(database).unwrap();
    let settings = [KEPT, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    let server = Server::start_in(folder.clone(), &settings);
    assert_eq!(server.get_open("/ready").json()["revision"], json!(3), "the last change was not kept");
    assert_eq!(told(&server).unwrap().len(), 4);
    drop(server);
    // Without its lock nobody knows when it was served.
    fs::remove_file(folder.path().join("kept.lock")).unwrap();
    let server = Server::launch(folder, &settings);
    server.wait_until("it says so", || server.log().contains("it is not known when it was served"));
    assert_eq!(told(&server), None);
}

/// Times that are yet to come say that the clock was set back, so nobody knows for how long the server was down.
#[test]
fn a_kept_snapshot_from_a_time_that_is_yet_to_come_is_not_served() {
    let folder = folder();
    drop(start(&folder));
    fs::rename(folder.path().join("data"), folder.path().join("aside")).unwrap();
    let settings = [KEPT, ("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")];
    assert!(told(&Server::start_in(folder.clone(), &settings)).is_some(), "as it is, it is served");
    for name in ["kept", "kept.lock"] {
        let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        file.set_modified(before + std::time::Duration::from_hours(1)).unwrap();
        let server = Server::launch(folder.clone(), &settings);
        server.wait_until("it says so", || server.log().contains("which is yet to come"));
        assert_eq!(told(&server), None, "{name}");
        drop(server);
        file.set_modified(before).unwrap();
    }
}

/// Nobody else needs to read what a fleet is made of.
#[test]
fn what_a_server_writes_is_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = folder();
    let server = start(&folder);
    give(&server, "one");
    must(folder.path(), &["backup", "backup"]);
    let files = ["", "-wal", "-shm"].map(|end| format!("data/flux-resourceset.db{end}"));
    for name in files.iter().map(String::as_str).chain(["kept", "kept.lock", "backup"]) {
        assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}");
    }
    // What an operator has opened for a group stays so, and so do the files beside it.
    let database = server.database();
    server.signal(nix::sys::signal::SIGTERM);
    assert!(server.wait().success());
    fs::set_permissions(&database, fs::Permissions::from_mode(0o640)).unwrap();
    let server = start(&folder);
    give(&server, "two");
    for name in files {
        assert_eq!(mode(&folder.path().join(&name)), 0o640, "{name}");
    }
}

#[test]
fn a_fleet_that_was_known_is_not_begun_anew() {
    let folder = folder();
    let server = start(&folder);
    give(&server, "one");
    let database = server.database();
    drop(server);
    fs::remove_file(database).unwrap();
    for (what, damage) in [("not used", Some("damaged")), ("not there any more", None)] {
        match damage {
            Some(text) => fs::write(folder.path().join("kept"), text).unwrap(),
            None => fs::remove_file(folder.path().join("kept")).unwrap(),
        }
        let server = Server::start_in(folder.clone(), &[CRUD, KEPT, ("SEED_FILE", "seed.json")]);
        assert_eq!(server.get_open("/ready").json()["revision"], json!(0), "no seed");
        assert_eq!(server.poll(DEMO, "namespaces").status, 404);
        server.wait_until("it says so", || server.log().contains(what));
    }
}

/// Somebody may put the store back.
#[test]
fn what_was_kept_is_served_while_the_store_is_damaged() {
    let folder = folder();
    let server = start(&folder);
    let (before, database) = (told(&server), server.database());
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.wait().success());
    let sound = fs::read(&database).unwrap();
    fs::write(&database, vec![7; 8192]).unwrap();
    let server = Server::start_in(folder, &[CRUD, KEPT]);
    assert_eq!(told(&server), before);
    fs::write(&database, sound).unwrap();
    store_is(&server, "following");
    give(&server, "one");
}

#[test]
fn a_picture_of_another_fleet_is_not_served() {
    let (one, other) = (folder(), folder());
    drop(start(&one));
    drop(start(&other));
    fs::copy(other.path().join("kept"), one.path().join("kept")).unwrap();
    let server = Server::launch(one, &[CRUD, KEPT]);
    store_is(&server, "diverged");
    assert_eq!((told(&server), server.get_open("/ready").json()["code"].clone()), (None, json!("store-diverged")));
    // Not even while the store is away.
    let (database, aside) = (server.database(), server.folder().path().join("aside"));
    fs::rename(&database, &aside).unwrap();
    server.wait_until("it is noticed", || server.get_open("/ready").json()["code"] == json!("not-ready"));
    assert_eq!(told(&server), None);
    fs::rename(&aside, &database).unwrap();
    store_is(&server, "diverged");
    assert_eq!(told(&server), None);
}

/// A log that lost its end, grew past it and forgot that, while the server was off.
#[test]
fn another_history_is_known_by_what_is_left_of_its_past() {
    let folder = folder();
    let server = start(&folder);
    must(folder.path(), &["backup", "older"]);
    give(&server, "one");
    give(&server, "two");
    let (before, database) = (told(&server), server.database());
    drop(server);
    must(folder.path(), &["restore", "--replace", "older"]);
    let other = Server::start_in(folder.clone(), &[CRUD]);
    for id in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(other.post("/namespaces", &json!({"id": id})).status, 201);
    }
    drop(other);
    let dsn = format!("sqlite://{}?mode=rw", database.display()).parse().unwrap();
    block_on(async { SqliteStore::open(&dsn).await.unwrap().prune(Revision(6)).await.unwrap() });
    let server = start(&folder);
    store_is(&server, "diverged");
    assert_eq!(told(&server), before);
    assert_eq!(server.get("/changes").json()["code"], json!("store-diverged"), "the past is not that of the present");
}

/// A server that serves something else than the operator saw holds on to it.
#[test]
fn a_word_reaches_those_who_serve_what_was_seen() {
    let folder = folder();
    let writer = start(&folder);
    must(folder.path(), &["backup", "older"]);
    give(&writer, "one");
    let url = format!("sqlite://{}?mode=rwc", writer.database().display());
    let reader = Server::start(&[("DATABASE_URL", &url), KEPT]);
    let before = told(&reader);
    assert_eq!(before.as_ref().map(Vec::len), Some(4));
    drop(writer);
    must(folder.path(), &["restore", "--replace", "older"]);
    // This one remembers nothing.
    let writer = Server::start_in(folder, &[CRUD]);
    assert_eq!(told(&writer).unwrap().len(), 3);
    store_is(&reader, "diverged");
    let digest = writer.get("/store").json()["log"]["digest"].as_str().unwrap().to_owned();
    let accept = |more: &str| writer.post(&format!("/store/accept?expected_digest={digest}{more}"), &json!({}));
    let refused = accept("");
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("not-diverged")), "{}", refused.body);
    assert_eq!(accept(&format!("&served={digest}")).status, 200);
    reader.after_a_refresh();
    let store = reader.get("/store").json();
    assert_eq!((told(&reader), &store["status"]), (before, &json!("diverged")), "nobody saw what this one would lose");
    let log = store["log"]["digest"].as_str().unwrap();
    let served = store["picture"]["digest"].as_str().unwrap();
    let path = format!("/store/accept?expected_digest={log}&served={served}");
    let accepted = writer.write("POST", &path, &json!({}), &[("x-change-reason", "seen")]);
    assert_eq!((accepted.status, &accepted.json()["epoch"]), (200, &json!(2)), "{}", accepted.body);
    assert_eq!(accepted.headers["x-revision"], "3");
    let change = writer.get("/changes?limit=1").json();
    assert_eq!((&change[0]["overrules"], &change[0]["reason"]), (&json!(served), &json!("seen")));
    store_is(&reader, "following");
    assert_eq!(told(&reader).unwrap().len(), 3);
}

#[test]
fn a_backup_is_whole_or_not_there() {
    let folder = folder();
    let path = folder.path();
    assert!(refused(path, &["backup", "file"], 1).contains("No such file"), "a wrong address makes no store");
    assert!(!path.join("data").exists() && !path.join("file").exists());
    let server = start(&folder);
    give(&server, "one");
    must(path, &["backup", "file"]);
    let piped = run(path, &["backup", "-"]);
    assert_eq!(piped.stdout, fs::read(path.join("file")).unwrap());
    assert_eq!(run(path, &["backup", "/dev/full"]).status.code(), Some(1));
    assert!(refused(path, &["backup", "missing/file"], 1).contains("missing"));
    let memory = command(path).args(["backup", "other"]).env("STORE_BACKEND", "memory").output().unwrap();
    assert_eq!(memory.status.code(), Some(2));
    // Nothing half-made is left.
    let left: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter().all(|name| ["seed.json", "data", "kept", "kept.lock", "file"].contains(&name.to_str().unwrap()))
    );

    assert!(refused(path, &["restore", "file"], 1).contains("the store has a log already"));
    assert!(
        refused(path, &["restore", "--replace", "seed.json"], 1)
            .contains("seed.json: it is not a backup of a change log")
    );
    fs::write(path.join("cut"), &piped.stdout[..piped.stdout.len() - 9]).unwrap();
    assert!(refused(path, &["restore", "--replace", "cut"], 1).contains("cut: it is cut short"));
    assert_eq!(told(&server).unwrap().len(), 4);
    // Into a new file, with the whole past.
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
fn a_file_of_an_older_program_is_left_alone() {
    let folder = folder();
    fs::create_dir(folder.path().join("data")).unwrap();
    let file = folder.path().join("data/flux-resourceset.db");
    let older = "PRAGMA application_id = 0x66727331; CREATE TABLE changes (revision INTEGER)";
    rusqlite::Connection::open(&file).unwrap().execute_batch(older).unwrap();
    let told = refused(folder.path(), &[], 1);
    assert!(told.contains("the file was made by an older version of this program"), "{told}");
}
