//! A disk is full.

use std::{os::unix::fs::chown, sync::Arc};

use harness::{Postgres, SmallDisk};
use serde_json::json;

use crate::{
    server::Server,
    world::{answers, converge, finish_without_failures, load, seed, start, start_again, wait_until_ready},
};

/// A text that a database cannot compress into the free space of its pages.
fn incompressible(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

/// Changes are refused, and accepted again once there is space; polls go on, and nothing is lost.
fn survives_a_full_disk(server: &Server, disk: &SmallDisk) {
    for at in 1..5 {
        assert_eq!(server.put(&format!("/clusters/c1/namespaces/n{at}"), &json!({})).status, 200);
    }
    let before = answers(server);
    let loads = load(&[server], 200);
    disk.fill();
    let large = json!({"annotations": {"text": incompressible(100_000)}});
    let refused = server.patch("/namespaces/n1", &large);
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("store-unavailable")), "{}", refused.body);
    assert!(refused.headers.contains_key("retry-after"));
    assert!(answers(server) == before);
    disk.free();
    server.wait_until("changes are accepted again", || {
        server.put("/clusters/c1/namespaces/n5", &json!({})).status == 200
    });
    assert!(answers(server)["/api/v2/flux/clusters/c1.example/namespaces"].contains("\"n5\""));
    finish_without_failures(loads);
}

#[test]
fn the_disk_of_a_sqlite_file() {
    let Some(disk) = SmallDisk::mount(8) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.json"), seed().to_string()).unwrap();
    let url = format!("sqlite://{}/log.db?mode=rwc", disk.path().display());
    let settings = [("DATABASE_URL", url.as_str()), ("API_MODE", "crud"), ("SEED_FILE", "seed.json")];
    let server = Server::launch(Arc::new(folder), &settings);
    wait_until_ready(&server);
    survives_a_full_disk(&server, &disk);
    let (folder, before) = (server.folder().clone(), answers(&server));
    drop(server);
    let server = Server::launch(folder, &settings);
    wait_until_ready(&server);
    assert!(answers(&server) == before);
}

#[test]
fn the_disk_of_the_database() {
    let Some(disk) = SmallDisk::mount(16) else { return };
    let postgres = Postgres::start();
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(postgres.folder()).unwrap());
    let folder = disk.path().join("space");
    std::fs::create_dir(&folder).unwrap();
    chown(disk.path(), Some(owner), None).unwrap();
    chown(&folder, Some(owner), None).unwrap();
    postgres.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", folder.display()));
    postgres.sql("postgres", "CREATE DATABASE fleet TABLESPACE small");
    let server = start(&postgres.url("fleet"), "crud");
    survives_a_full_disk(&server, &disk);
    let server = start_again(server, &postgres.url("fleet"), "crud");
    converge(&[&server], &postgres.url("fleet"));
}

/// A snapshot that cannot be saved is still served, and the older snapshot file is deleted.
#[test]
fn the_disk_of_the_snapshot() {
    let Some(disk) = SmallDisk::mount(2) else { return };
    let postgres = Postgres::start();
    let url = postgres.database();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.json"), seed().to_string()).unwrap();
    let file = disk.path().join("snapshot");
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("API_MODE", "crud"),
        ("SEED_FILE", "seed.json"),
        ("SNAPSHOT_FILE", file.to_str().unwrap()),
    ];
    let server = Server::launch(Arc::new(folder), &settings);
    wait_until_ready(&server);
    assert!(file.exists());
    disk.fill();
    let large = json!({"annotations": {"text": incompressible(100_000)}});
    assert_eq!(server.patch("/namespaces/n1", &large).status, 200);
    assert!(!file.exists(), "it would be an older snapshot");
    assert!(server.log().contains("the snapshot is served and not saved"), "{}", server.log());
    disk.free();
    server.wait_until("the snapshot is saved again", || file.exists());
    let (folder, before) = (server.folder().clone(), answers(&server));
    drop(server);
    postgres.stop();
    let server = Server::launch(folder, &settings);
    wait_until_ready(&server);
    assert!(answers(&server) == before);
}
