//! Many servers, one database.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use harness::{Postgres, Proxy};
use serde_json::json;

use crate::{
    server::{Server, command},
    world::{
        CLUSTERS, answers, assert_nothing_lost, converge, finish_without_failures, launch, load, log, seed, settings,
        start, wait_until_ready,
    },
};

#[test]
fn ten_servers_start_together_on_an_empty_database() {
    let url = Postgres::shared().database();
    let servers: Vec<_> = (0..10).map(|at| launch(&url, if at % 2 == 0 { "crud" } else { "read-only" })).collect();
    servers.iter().for_each(wait_until_ready);
    converge(&servers.iter().collect::<Vec<_>>(), &url);
    assert_eq!(log(&url).len(), 1, "the seed is appended once");
    assert_eq!(servers[0].patch("/clusters/c0", &json!({"environment": "qa"})).status, 200);
    converge(&servers.iter().collect::<Vec<_>>(), &url);
}

/// Two servers that accept changes, three that only read, and four writers with 500 random changes each.
#[test]
fn writers_on_several_servers_end_with_equal_replicas() {
    let url = Postgres::shared().database();
    let writers = [start(&url, "crud"), start(&url, "crud")];
    let readers = [start(&url, "read-only"), start(&url, "read-only"), start(&url, "read-only")];
    let (made, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let acknowledged: Vec<_> = thread::scope(|scope| {
        let tasks: Vec<_> = (0..4_u64)
            .map(|writer| {
                let (server, made, refused) = (&writers[usize::try_from(writer % 2).unwrap()], &made, &refused);
                scope.spawn(move || {
                    let mut chance = Chance(writer + 1);
                    let mut acknowledged = Vec::new();
                    for turn in 0..500 {
                        let request = format!("writer-{writer}-{turn}");
                        let answer = random_change(server, &mut chance, &request);
                        assert!([200, 201, 404, 409, 410, 422].contains(&answer.0), "{answer:?}");
                        let count = if answer.0 < 300 { made } else { refused };
                        count.fetch_add(1, Ordering::Relaxed);
                        acknowledged.extend(answer.1.map(|revision| (revision, request)));
                    }
                    acknowledged
                })
            })
            .collect();
        tasks.into_iter().flat_map(|task| task.join().unwrap()).collect()
    });
    assert!(made.load(Ordering::Relaxed) > 1_000, "most changes are possible");
    assert_nothing_lost(&url, &acknowledged);
    let all: Vec<_> = writers.iter().chain(&readers).collect();
    converge(&all, &url);
}

/// Twenty thousand writes while it was disconnected: too many to be read at once, and polls go on meanwhile.
#[test]
fn a_replica_that_is_far_behind_catches_up() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let proxy = Proxy::to(postgres.port());
    let far = url.replace(&format!(":{}/", postgres.port()), &format!(":{}/", proxy.port()));
    let (writer, reader) = (start(&url, "crud"), start(&far, "read-only"));
    proxy.refuse();
    let text = "x".repeat(2_000);
    for round in 0..20 {
        let body = json!({"annotations": {"text": text}});
        let write = |at: u64| json!({"op": "put", "kind": "namespace", "id": format!("b{round}-{at}"), "body": body});
        let writes: Vec<_> = (0..1_000).map(write).collect();
        assert_eq!(writer.post("/batch", &json!({"writes": writes})).status, 200);
    }
    let loads = load(&[&reader], 100);
    proxy.heal();
    converge(&[&writer, &reader], &url);
    finish_without_failures(loads);
}

/// The change log keeps its id and its history, so a server with a snapshot file continues to follow it.
#[test]
fn a_change_log_moves_from_sqlite_to_postgresql() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.json"), seed().to_string()).unwrap();
    let folder = std::sync::Arc::new(folder);
    let file = "sqlite://data/log.db?mode=rwc";
    let server = Server::start_in(folder.clone(), &settings(file, "crud"));
    assert_eq!(server.put("/clusters/c1/namespaces/n1", &json!({})).status, 200);
    let (before, past) = (answers(&server), server.get("/changes").json());
    drop(server);
    let url = Postgres::shared().database();
    for (what, address) in [("backup", file), ("restore", url.as_str())] {
        let done = command(folder.path()).args([what, "moved"]).env("DATABASE_URL", address).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let server = Server::start_in(folder, &settings(&url, "crud"));
    assert_eq!((answers(&server), server.get("/changes").json()), (before, past));
    assert!(!server.log().contains("the change log diverged"), "{}", server.log());
    assert_eq!(server.put("/clusters/c1/namespaces/n2", &json!({})).status, 200);
    converge(&[&server], &url);
}

/// Pseudo-random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The status of a change and, if it did something, its revision.
fn random_change(server: &Server, chance: &mut Chance, request: &str) -> (u16, Option<u64>) {
    let clusters = CLUSTERS as u64;
    let (cluster, namespace) = (chance.below(clusters), chance.below(40));
    let (method, path, body) = match chance.below(8) {
        0..=2 => ("PUT", format!("/clusters/c{cluster}/namespaces/n{namespace}"), json!({})),
        3 => ("DELETE", format!("/clusters/c{cluster}/namespaces/n{namespace}"), json!(null)),
        4 => ("PATCH", format!("/namespaces/n{namespace}"), json!({"labels": {"at": chance.below(1_000).to_string()}})),
        5 => (
            "PATCH",
            format!("/clusters/c{cluster}/patches/podinfo"),
            json!({"replicaCount": chance.below(9).to_string()}),
        ),
        6 => ("DELETE", format!("/namespaces/n{}", 300 + chance.below(50)), json!(null)),
        _ => ("POST", "/namespaces".to_owned(), json!({"id": format!("n{}", 300 + chance.below(50))})),
    };
    let answer = server.write(method, &path, &body, &[("x-request-id", request)]);
    let revision = answer.headers.get("x-revision").map(|value| value.to_str().unwrap().parse().unwrap());
    // If there was nothing to do, the revision is that of another change.
    let did_something = answer.status < 300 && revision.is_some_and(|at: u64| made_by(server, at) == request);
    (answer.status, revision.filter(|_| did_something))
}

fn made_by(server: &Server, revision: u64) -> String {
    server.get(&format!("/changes/{revision}")).json()["request_id"].as_str().unwrap_or_default().to_owned()
}
