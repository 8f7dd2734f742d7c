//! Several writers: no acknowledged change is lost.

use std::{sync::Arc, thread};

use model::Value;
use serde_json::json;

use super::DEMO;
use crate::harness::{Server, repository};

/// 8 clients, 25 patches each, without ever reading.
fn patch_from_eight(servers: &[&Server]) {
    thread::scope(|scope| {
        for client in 0..8 {
            let server = servers[client % servers.len()];
            scope.spawn(move || {
                for at in 0..25 {
                    let answer = server.patch(
                        "/clusters/demo-cluster-01",
                        &json!({"patches": {"podinfo": {format!("k{client}-{at}"): "x"}}}),
                    );
                    assert_eq!(answer.status, 200, "{}", answer.body);
                }
            });
        }
    });
    // The seed and 200 changes; those of another process are visible a little later.
    for server in servers {
        server.wait_until("all changes are visible", || server.get_open("/ready").json()["revision"] == json!(201));
    }
    let patches = servers[0].get("/clusters/demo-cluster-01").json()["patches"]["podinfo"].clone();
    let present = patches.as_object().unwrap().keys().filter(|key| key.starts_with('k')).count();
    assert_eq!(present, 200);
}

#[test]
fn none_of_two_hundred_patches_of_one_document_is_lost() {
    patch_from_eight(&[&Server::crud()]);
}

#[test]
fn no_patch_is_lost_through_two_processes_on_one_file() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let seed = repository("data/seed.json");
    let settings = [("API_MODE", "crud"), ("SEED_FILE", seed.to_str().unwrap())];
    let (one, two) = (Server::start_in(folder.clone(), &settings), Server::start_in(folder, &settings));
    patch_from_eight(&[&one, &two]);
    assert_eq!(one.poll(DEMO, "platform-components").body, two.poll(DEMO, "platform-components").body);
}

/// A writer may prepare on the pending head, which is not durable yet. It still gets the right status: created, conflict, not
/// found, or nothing to do.
#[test]
fn concurrent_writers_get_the_right_status() {
    let server = Server::start(&[("API_MODE", "crud")]);
    let (racers, rounds) = (8, 25);
    let statuses: Vec<Vec<u16>> = thread::scope(|scope| {
        let race = |racer: usize| {
            let server = &server;
            scope.spawn(move || {
                let mut created = Vec::new();
                for round in 0..rounds {
                    // All writers create the first one, and each a second one with a name that no other writer uses.
                    created.push(server.post("/namespaces", &json!({"id": format!("n{round}")})).status);
                    let own = format!("/namespaces/n{round}-{racer}");
                    assert_eq!(server.patch(&own, &json!({"labels": {"a": "b"}})).status, 404);
                    assert_eq!(server.post("/namespaces", &json!({"id": format!("n{round}-{racer}")})).status, 201);
                    assert_eq!(server.post("/namespaces", &json!({"id": "Not a name"})).status, 422);
                    for _ in 0..2 {
                        let patched = server.patch(&own, &json!({"labels": {"a": "b"}}));
                        assert_eq!((patched.status, &patched.json()["labels"]["a"]), (200, &json!("b")));
                    }
                }
                created
            })
        };
        let racers: Vec<_> = (0..racers).map(race).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    for round in 0..rounds {
        let mut statuses: Vec<_> = statuses.iter().map(|statuses| statuses[round]).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [&[201][..], &[409; 7]].concat(), "round {round}");
    }
    let changes = rounds + 2 * racers * rounds;
    assert_eq!(
        server.get_open("/ready").json()["revision"],
        json!(changes),
        "a write that changes nothing makes no revision"
    );
}

/// Only on the newest snapshot is it certain that there is nothing to do.
#[test]
fn an_edit_on_a_stale_snapshot_is_prepared_again() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let settings = [("API_MODE", "crud")];
    let (one, two) = (Server::start_in(folder.clone(), &settings), Server::start_in(folder, &settings));
    let label = |text: &str| json!({"labels": {"text": text}});
    one.post("/namespaces", &json!({"id": "a", "labels": {"text": "first"}}));
    two.wait_until("it is visible", || two.get("/namespaces/a").status == 200);
    for _ in 0..5 {
        assert_eq!(two.patch("/namespaces/a", &label("second")).status, 200);
        assert_eq!(one.patch("/namespaces/a", &label("first")).status, 200);
        let id = format!("n{}", one.get_open("/ready").json()["revision"]);
        two.post("/namespaces", &json!({"id": id}));
        assert_eq!(
            one.patch(&format!("/namespaces/{id}"), &label("hello")).status,
            200,
            "the namespace of the other server is found"
        );
        let now = one.get("/namespaces/a").json();
        assert_eq!(now["labels"]["text"], json!("first"), "the last writer wins");
        let head = one.get_open("/ready").json()["revision"].clone();
        two.wait_until("it is visible", || two.get_open("/ready").json()["revision"] == head);
    }
}

#[test]
fn rules_that_span_documents_hold_across_processes() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let settings = [("API_MODE", "crud")];
    let servers = [Server::start_in(folder.clone(), &settings), Server::start_in(folder, &settings)];
    // Both create a cluster of one DNS name, again and again: one of the two must be refused each time.
    for round in 0..10 {
        let statuses: Vec<u16> = thread::scope(|scope| {
            let racers = servers.iter().enumerate().map(|(at, server)| {
                let id = format!("c{round}-{at}");
                let body = json!({"id": id, "cluster_name": id, "cluster_dns": format!("{round}.example"), "environment": "dev"});
                scope.spawn(move || server.post("/clusters", &body).status)
            });
            racers.collect::<Vec<_>>().into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let mut sorted = statuses.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [201, 409], "{statuses:?}");
    }
}

#[test]
fn twenty_kills_lose_nothing_that_was_acknowledged() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..20 {
        let server = Server::start_in(folder.clone(), &[("API_MODE", "crud")]);
        let known: Vec<Value> = server.get("/namespaces").json().as_array().unwrap().clone();
        for id in &acknowledged {
            assert!(known.iter().any(|it| it["id"] == **id), "{id} was acknowledged and is lost");
        }
        let changes = server.get("/changes?limit=1000").json();
        let revisions: Vec<_> = changes.as_array().unwrap().iter().map(|it| it["revision"].as_u64().unwrap()).collect();
        let head = server.get_open("/ready").json()["revision"].as_u64().unwrap();
        assert_eq!(revisions, (1..=head).rev().take(1_000).collect::<Vec<_>>(), "the change log has no gap");
        thread::scope(|scope| {
            let write = |writer: usize| {
                let server = &server;
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for at in 0.. {
                        let id = format!("n{round}-{writer}-{at}");
                        match server.try_write("POST", "/namespaces", &json!({"id": id})) {
                            Some(201) => done.push(id),
                            _ => return done,
                        }
                    }
                    done
                })
            };
            let writers: Vec<_> = (0..4).map(write).collect();
            thread::sleep(std::time::Duration::from_millis(30 + round * 7));
            server.signal(nix::sys::signal::Signal::SIGKILL);
            acknowledged.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
        });
    }
    assert!(acknowledged.len() > 20, "only {} writes were acknowledged", acknowledged.len());
}
