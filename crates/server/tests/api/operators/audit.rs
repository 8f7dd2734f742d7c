//! The audit trail, past revisions, and reverts.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    sync::Arc,
};

use model::Value;
use serde_json::json;

use super::DEMO;
use crate::harness::{Server, append, put};

fn revisions(changes: &Value) -> Vec<u64> {
    changes.as_array().unwrap().iter().map(|it| it["revision"].as_u64().unwrap()).collect()
}

#[test]
fn every_change_records_its_actor_time_reason_and_writes() {
    let server = Server::crud();
    let headers = [("x-change-reason", "ticket 42"), ("x-request-id", "req-7")];
    server.write("PATCH", "/namespaces/podinfo", &json!({"labels": {"app": "new"}}), &headers);
    let change = server.get("/changes/2").json();
    assert_eq!(
        json!({"actor": change["actor"], "reason": change["reason"], "request_id": change["request_id"], "writes": change["writes"]}),
        json!({
            "actor": "crud-auth-token", "reason": "ticket 42", "request_id": "req-7",
            "writes": [{
                "kind": "namespace", "id": "podinfo", "op": "put",
                "before": {"id": "podinfo", "labels": {"app": "podinfo"}, "annotations": {}},
                "after": {"id": "podinfo", "labels": {"app": "new"}, "annotations": {}}
            }]
        })
    );
    assert!(change["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(server.get("/changes/1").json()["actor"], json!("seed"));
    for unknown in ["/changes/0", "/changes/99"] {
        assert_eq!(server.get(unknown).json()["code"], json!("unknown-revision"));
    }
    assert_eq!(server.get("/changes/x").status, 404);
}

#[test]
fn the_audit_trail_is_filtered_and_paged() {
    let server = Server::crud();
    for at in 0..5 {
        let (path, body) = if at % 2 == 0 {
            ("/namespaces/podinfo", json!({"labels": {"n": at.to_string()}}))
        } else {
            ("/namespaces/traefik", json!({"labels": {"n": at.to_string()}}))
        };
        server.patch(path, &body);
    }
    assert_eq!(revisions(&server.get("/changes").json()), [6, 5, 4, 3, 2, 1]);
    assert_eq!(revisions(&server.get("/changes?kind=namespaces&id=podinfo").json()), [6, 4, 2, 1]);
    let page = server.get("/changes?limit=2");
    assert_eq!(page.headers["link"], "</changes?before=5&limit=2>; rel=\"next\"");
    let page = server.get("/changes?limit=2&id=podinfo");
    assert_eq!(page.headers["link"], "</changes?id=podinfo&before=4&limit=2>; rel=\"next\"");
    assert!(server.get("/namespaces/podinfo/history?limit=1").headers.contains_key("link"));
    assert_eq!(server.get("/changes?id=no%20id").status, 400);
    let misspelt = server.get("/changes?kind=namespaecs");
    assert_eq!((misspelt.status, &misspelt.json()["code"]), (400, &json!("invalid-query")), "{}", misspelt.body);
    assert_eq!(revisions(&server.get("/changes?kind=resource_type").json()), [1]);
    assert_eq!(revisions(&server.get("/changes?before=5&limit=2").json()), [4, 3]);
    assert_eq!(revisions(&server.get("/changes?actor=seed").json()), [1]);
    assert_eq!(revisions(&server.get("/changes?since=2100-01-01T00:00:00Z").json()), [0_u64; 0]);
    assert_eq!(revisions(&server.get("/changes?until=2100-01-01T00:00:00Z&limit=1").json()), [6]);
    assert_eq!(server.get("/changes?since=yesterday").status, 400);
    let history = server.get("/namespaces/podinfo/history").json();
    assert_eq!(revisions(&history), [6, 4, 2, 1]);
    assert_eq!(history[1]["body"]["labels"]["n"], json!("2"));
    assert_eq!(server.get("/namespaces/ghost/history").status, 404);
}

#[test]
fn past_revisions_can_be_read() {
    let server = Server::crud();
    let before = server.poll(DEMO, "platform-components").body;
    server.put("/clusters/demo-cluster-01/patches/podinfo", &json!({"replicaCount": "9"}));
    server.delete("/clusters/demo-cluster-01");
    assert_eq!(server.get("/clusters/demo-cluster-01/inputs/platform-components?revision=1").body, before);
    let then = server.get("/clusters/demo-cluster-01?revision=2");
    assert_eq!(
        (then.json()["patches"]["podinfo"]["replicaCount"].clone(), &then.headers["etag"]),
        (json!("9"), &"\"2\"".parse().unwrap())
    );
    assert_eq!(
        server.get("/clusters/demo-cluster-01/inputs/namespaces").body,
        r#"{"inputs":[]}"#,
        "it is decommissioned since"
    );
    assert_eq!(server.get("/clusters?revision=2").json().as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/clusters").json(), json!([]));
    assert_eq!(server.get("/clusters?revision=9").json()["code"], json!("unknown-revision"));
}

#[test]
fn a_change_from_ten_changes_ago_is_reverted() {
    let server = Server::crud();
    server.write(
        "PATCH",
        "/namespaces/podinfo",
        &json!({"labels": {"app": "oops"}}),
        &[("x-change-reason", "by mistake")],
    );
    for at in 0..10 {
        server.patch("/namespaces/traefik", &json!({"labels": {"n": at.to_string()}}));
    }
    let headers = [("x-change-reason", "undo 2")];
    let reverted = server.write("POST", "/changes/2/revert", &json!({}), &headers);
    assert_eq!((reverted.status, &reverted.json()["revision"]), (200, &json!(13)), "{}", reverted.body);
    assert_eq!(server.get("/namespaces/podinfo").json()["labels"], json!({"app": "podinfo"}));
    let trail = server.get("/changes/13").json();
    assert_eq!((&trail["reason"], &trail["writes"][0]["before"]["labels"]["app"]), (&json!("undo 2"), &json!("oops")));

    let conflict = server.post("/changes/5/revert", &json!({}));
    assert_eq!((conflict.status, &conflict.json()["code"]), (409, &json!("revert-conflict")));
    assert_eq!(conflict.json()["errors"][0]["message"], json!("revision 12 wrote it since"));
}

#[test]
fn reverting_is_reviewed_like_any_change() {
    let server = Server::crud();
    server.post("/namespaces", &json!({"id": "extra"}));
    server.put("/clusters/demo-cluster-01/namespaces/extra", &json!({}));
    let answer = server.post("/changes/2/revert", &json!({}));
    assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("referenced")), "it is referenced now");
    assert_eq!(server.post("/changes/3/revert", &json!({})).status, 200);
    assert_eq!(server.post("/changes/2/revert", &json!({})).status, 200);
    assert_eq!(server.get("/namespaces/extra").status, 404);
    assert_eq!(server.post("/changes/1/revert", &json!({})).json()["code"], json!("seed"));
    // A deleted document is restored, too.
    assert_eq!(server.post("/namespaces/extra/revert", &json!({"revision": 2})).status, 200);
    assert_eq!(server.get("/namespaces/extra").status, 200);
}

#[test]
fn a_batch_is_reverted_whole_and_a_protected_cluster_stays() {
    let server = Server::crud();
    let cluster = json!({"id": "new", "cluster_name": "new", "cluster_dns": "new.example", "environment": "dev",
        "namespaces": [{"id": "a"}]});
    let component =
        |id: &str, on: &[&str]| json!({"id": id, "component_path": "x", "oci_url": "https://x", "depends_on": on});
    let batch = json!({"writes": [
        {"op": "create", "kind": "namespace", "body": {"id": "a"}}, {"op": "create", "kind": "cluster", "body": cluster},
        {"op": "create", "kind": "platform_component", "body": component("a-base", &[])},
        {"op": "create", "kind": "platform_component", "body": component("b-app", &["a-base"])}
    ]});
    server.post("/batch", &batch);
    assert_eq!(server.post("/changes/2/revert", &json!({})).status, 200);
    assert_eq!((server.get("/namespaces/a").status, server.get("/clusters/new").status), (404, 410));

    server.patch("/clusters/demo-cluster-01", &json!({"environment": "qa"}));
    server.delete("/clusters/demo-cluster-01");
    server.post("/clusters/demo-cluster-01/restore", &json!({}));
    assert_eq!(server.post("/changes/6/revert?dry_run=true", &json!({})).status, 200, "a restore can be undone");
    server.patch("/clusters/demo-cluster-01", &json!({"deletion_protection": true}));
    server.delete("/clusters/demo-cluster-01");
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_document_is_reverted_to_a_past_revision() {
    let server = Server::crud();
    for at in 0..3 {
        server.patch("/namespaces/podinfo", &json!({"labels": {"n": at.to_string()}}));
    }
    let answer = server.post("/namespaces/podinfo/revert", &json!({"revision": 2}));
    assert_eq!((answer.status, answer.json()["labels"]["n"].clone()), (200, json!("0")));
    assert_eq!(server.post("/namespaces/podinfo/revert", &json!({"revision": 99})).status, 404);
    assert_eq!(server.post("/namespaces/podinfo/revert", &json!({})).status, 400);
}

#[test]
fn the_change_log_is_streamed_as_events() {
    let server = Server::crud();
    server.patch("/namespaces/podinfo", &json!({"labels": {"n": "1"}}));
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    stream
        .write_all(
            b"GET /changes/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer read-token\r\nlast-event-id: 1\r\n\r\n",
        )
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut next = || {
        let id = lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap();
        id.parse::<u64>().unwrap()
    };
    assert_eq!(next(), 2, "missed changes come first");
    server.patch("/namespaces/podinfo", &json!({"labels": {"n": "2"}}));
    server.patch("/namespaces/podinfo", &json!({"labels": {"n": "3"}}));
    assert_eq!((next(), next()), (3, 4));
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(lines.filter(|line| line.starts_with("id: ")).count(), 0, "the stream ends");
    let log = server.log();
    assert_eq!(server.wait().code(), Some(0));
    assert!(!log.contains("are aborted"), "no request had to be aborted: {log}");
}

/// The clock of this server is decades ahead of every change, as after a jump.
#[test]
fn a_clock_far_ahead_of_the_change_log_prunes_nothing() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    // At the beginning of 1970.
    for at in 0..4 {
        let body = put(&json!({"id": "podinfo", "labels": {"n": at.to_string()}}));
        append(&folder.path().join("data/flux-resourceset.db"), &[("namespace", "podinfo", body)]);
    }
    let server = Server::start_in(folder, &[("API_MODE", "crud"), ("HISTORY_RETENTION", "1h")]);
    server.wait_until("retention has checked", || server.log().contains("are kept: the newest change"));
    let revisions = |it: &Value| it.as_array().unwrap().iter().map(|it| it["revision"].as_u64()).collect::<Vec<_>>();
    let remaining = revisions(&server.get("/changes").json());
    assert!(remaining.ends_with(&[4, 3, 2, 1].map(Some)), "{remaining:?}");
    assert_eq!(server.get("/namespaces/podinfo?revision=2").status, 200);
}

#[test]
fn retention_prunes_the_past_and_keeps_the_current_documents() {
    let server = Server::crud();
    for at in 0..5 {
        // Ages are measured against the newest change: all others are older than the retention then.
        std::thread::sleep(std::time::Duration::from_millis(20));
        server.patch("/namespaces/podinfo", &json!({"labels": {"n": at.to_string()}}));
    }
    let before = server.poll(DEMO, "namespaces").body;
    let folder = server.folder().clone();
    drop(server);
    let server = Server::start_in(folder, &[("API_MODE", "crud"), ("HISTORY_RETENTION", "10ms")]);
    server.wait_until("the past is pruned", || server.get("/changes").json().as_array().map(Vec::len) == Some(1));
    assert_eq!(server.poll(DEMO, "namespaces").body, before);
    assert_eq!(server.get("/namespaces/podinfo?revision=2").json()["code"], json!("pruned"));
    assert_eq!(server.patch("/namespaces/podinfo", &json!({"labels": {"n": "9"}})).status, 200);
}
