//! The database is unavailable.

use std::{thread, time::Duration};

use harness::Postgres;
use serde_json::json;

use crate::{
    server::Server,
    world::{
        Writing, answers, assert_nothing_lost, converge, finish_without_failures, launch, load, start, start_again,
        wait_for_store, wait_until_ready,
    },
};

/// 2,000 polls a second for a minute without a database, and none fails.
#[test]
fn a_minute_without_the_database() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (writer, reader, restarted) = (start(&url, "crud"), start(&url, "read-only"), start(&url, "read-only"));
    assert_eq!(writer.put("/clusters/c1/namespaces/n7", &json!({})).status, 200);
    converge(&[&writer, &reader, &restarted], &url);
    let before = answers(&reader);

    let loads = load(&[&writer, &reader], 2_000);
    thread::sleep(Duration::from_secs(5));
    postgres.stop();
    wait_for_store(&writer, "unavailable");
    for (method, path) in [("PUT", "/clusters/c1/namespaces/n8"), ("DELETE", "/clusters/c1"), ("GET", "/changes")] {
        let refused = writer.write(method, path, &json!({}), &[]);
        assert_eq!(refused.status, 503, "{method} {path}: {}", refused.body);
        assert!(refused.headers.contains_key("retry-after"), "{method} {path}");
    }
    thread::sleep(Duration::from_secs(20));
    let restarted = start_again(restarted, &url, "read-only");
    assert_eq!(answers(&restarted), before, "the saved snapshot is served");
    let ready = restarted.get_open("/ready").json();
    assert_eq!(ready["store"], json!("unavailable"));
    assert!(ready["age_seconds"].as_f64().unwrap() > 15.0, "{ready}");
    assert!(restarted.get_open("/metrics").body.contains("\nflux_resourceset_store_up 0\n"));
    let late = load(&[&restarted], 100);
    thread::sleep(Duration::from_secs(40));

    postgres.run();
    writer.wait_until("changes are accepted again", || {
        writer.put("/clusters/c1/namespaces/n8", &json!({})).status == 200
    });
    converge(&[&writer, &reader, &restarted], &url);
    let reports = finish_without_failures(loads);
    finish_without_failures(late);
    for report in &reports {
        println!("{} polls, {:.0} a second, none failed", report.sent, report.achieved_per_second);
    }
    let rate: f64 = reports.iter().map(|report| report.achieved_per_second).sum();
    assert!(rate > 1_000.0, "the machine is too slow to show anything: {rate} polls a second");
}

/// No acknowledged change is lost, and none is made twice.
#[test]
fn a_database_that_is_killed_under_load() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let servers = [start(&url, "crud"), start(&url, "crud"), start(&url, "read-only")];
    let all: Vec<_> = servers.iter().collect();
    let loads = load(&all, 600);
    let writing = Writing::start(servers[..2].iter().map(|server| server.address().to_owned()).collect());
    for _ in 0..3 {
        writing.wait_for_more(50);
        postgres.kill();
        thread::sleep(Duration::from_secs(2));
        postgres.run();
        writing.wait_for_more(10);
    }
    assert!(writing.refused() > 0, "some changes were refused");
    let acknowledged = writing.finish();
    converge(&all, &url);
    finish_without_failures(loads);
    assert_nothing_lost(&url, &acknowledged);
}

#[test]
fn a_start_without_the_database_and_without_a_snapshot_refuses_polls() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let server = start(&url, "read-only");
    let (folder, before) = (server.folder().clone(), answers(&server));
    drop(server);
    postgres.stop();
    let file = folder.path().join("snapshot");
    let intact = std::fs::read(&file).unwrap();

    let mut damaged = intact.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for (what, bytes) in [("damaged", damaged), ("cut short", intact[..intact.len() / 2].to_vec()), ("empty", vec![])] {
        std::fs::write(&file, bytes).unwrap();
        let server = Server::launch(folder.clone(), &crate::world::settings(&url, "read-only"));
        server.wait_until("it is logged", || server.log().contains("the snapshot file cannot be read and is not used"));
        server.wait_until("it has tried", || server.log().contains("the fleet is not loaded"));
        let answer = server.poll("c1.example", "namespaces");
        assert_eq!(answer.status, 503, "{what}: {}", answer.body);
        assert_eq!(server.get_open("/ready").status, 503, "{what}");
    }

    // Other servers may have served newer snapshots since; and with a time in the future, the time since is not known.
    std::fs::write(&file, &intact).unwrap();
    let (now, lock) = (std::time::SystemTime::now(), folder.path().join("snapshot.lock"));
    for served in [now - Duration::from_hours(2), now + Duration::from_hours(2)] {
        std::fs::File::options().write(true).open(&lock).unwrap().set_modified(served).unwrap();
        let server = Server::launch(folder.clone(), &crate::world::settings(&url, "read-only"));
        server.wait_until("it is logged", || {
            server.log().contains("the snapshot file is not served before the change log confirms it")
        });
        assert_eq!(server.poll("c1.example", "namespaces").status, 503);
    }
    let server = Server::launch(folder.clone(), &crate::world::settings(&url, "read-only"));
    postgres.run();
    wait_until_ready(&server);
    assert_eq!(answers(&server), before);
}

/// An empty database is not seeded by a server that knows a fleet: the seed is another fleet.
#[test]
fn a_database_that_lost_everything_is_not_seeded_over_a_known_fleet() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let writer = start(&url, "crud");
    assert_eq!(writer.put("/clusters/c1/namespaces/n7", &json!({})).status, 200);
    let before = answers(&writer);
    postgres.sql("postgres", "CREATE DATABASE blank");
    let blank = postgres.url("blank");
    let folder = writer.folder().clone();
    drop(writer);
    let writer = Server::launch(folder, &crate::world::settings(&blank, "crud"));
    let diverged = || writer.get_open("/metrics").body.contains("\nflux_resourceset_store_diverged 1\n");
    writer.wait_until("it is detected", diverged);
    assert_eq!(
        writer.poll("c1.example", "namespaces").status,
        503,
        "the change log or the snapshot is of another fleet"
    );
    assert_eq!(writer.put("/clusters/c1/namespaces/n8", &json!({})).status, 503);
    // The snapshot file can be restored like a backup.
    let snapshot = writer.folder().path().join("snapshot");
    let restored = std::process::Command::new(env!("CARGO_BIN_EXE_flux-resourceset"))
        .args(["restore", snapshot.to_str().unwrap()])
        .env("DATABASE_URL", &blank)
        .output()
        .unwrap();
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    wait_for_store(&writer, "following");
    assert_eq!(answers(&writer), before);
    assert_eq!(writer.put("/clusters/c1/namespaces/n8", &json!({})).status, 200);
}

/// A database that accepts connections and does not answer.
#[test]
fn a_database_that_hangs() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (writer, reader) = (start(&url, "crud"), start(&url, "read-only"));
    let before = answers(&writer);
    let loads = load(&[&writer, &reader], 400);
    postgres.pause();
    let refused = writer.put("/clusters/c1/namespaces/n7", &json!({}));
    assert_eq!(refused.status, 503, "{}", refused.body);
    wait_for_store(&reader, "unavailable");
    let starting = launch(&url, "read-only");
    starting.wait_until("it has tried", || starting.log().contains("the fleet is not loaded"));
    assert_eq!(starting.poll("c1.example", "namespaces").status, 503);
    assert_eq!(answers(&writer), before);
    postgres.resume();
    wait_until_ready(&starting);
    harness::eventually("changes are accepted again", &mut || {
        writer.put("/clusters/c1/namespaces/n7", &json!({})).status == 200
    });
    converge(&[&writer, &reader, &starting], &url);
    finish_without_failures(loads);
}
