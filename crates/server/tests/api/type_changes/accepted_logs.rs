//! Accepting a change log that has other records of types than the one that is served: its plan counts what clusters would lose,
//! by whatever files they are served.

use std::sync::Arc;

use model::Value;
use serde_json::json;
use tempfile::TempDir;

use super::{DNS, FileEdit, changed, digest, files, fleet_on_disk, start, statuses, stop};
use crate::harness::{Server, command};

const SWAPPED_PATHS: [FileEdit; 2] = [
    ("namespace", "    path: namespaces\n", "    path: rolebindings\n"),
    ("rolebinding", "    path: rolebindings\n", "    path: namespaces\n"),
];

fn run(folder: &TempDir, arguments: &[&str]) {
    let output = command(folder.path()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn ids(server: &Server, path: &str) -> Vec<Value> {
    let answer = server.poll(DNS, path).json();
    answer["inputs"].as_array().unwrap().iter().map(|input| input["id"].clone()).collect()
}

/// Two servers, with the built-in files and with swapped paths, which was accepted; and then the backup from before it is put back.
fn accepted_and_restored(folder: &Arc<TempDir>, edits: &[FileEdit]) -> (Server, Server) {
    run(folder, &["backup", "older"]);
    let new = start(folder, Some(&files(folder, "new", edits)));
    let found = new.get("/types/changes").json();
    let accept = format!(
        "/types/accept?allow_removals=9&expected_revision={}&expected_changes={}",
        found["revision"],
        digest(&found)
    );
    let accepted = new.post(&accept, &json!({}));
    assert_eq!(accepted.status, 200, "{}", accepted.body);
    let old = start(folder, None);
    run(folder, &["restore", "--replace", "older"]);
    for server in [&old, &new] {
        server.wait_until("it has diverged", || server.get("/store").json()["status"] == "diverged");
    }
    (old, new)
}

fn accept_path(server: &Server, more: &str) -> String {
    let digest = server.get("/store").json()["log"]["digest"].as_str().unwrap().to_owned();
    format!("/store/accept?expected_digest={digest}{more}")
}

#[test]
fn a_log_with_other_types_is_accepted_with_a_plan_that_counts_what_clusters_lose() {
    let folder = fleet_on_disk();
    let (old, new) = accepted_and_restored(&folder, &SWAPPED_PATHS);
    assert_eq!((ids(&new, "namespaces"), ids(&new, "rolebindings")), (vec![json!("admins")], vec![json!("shared")]));
    for server in [&old, &new] {
        let plan = server.post(&accept_path(server, "&dry_run=true"), &json!({})).json();
        let totals = &plan["totals"];
        assert_eq!((&totals["dev"]["removed"], &totals["prod"]["removed"]), (&json!(2), &json!(1)), "{plan}");
        let inputs = &plan["clusters"][0]["inputs"];
        let of = |path: &str| (inputs[path]["removed"].clone(), inputs[path]["added"].clone());
        assert_eq!(of("namespaces"), (json!(["admins"]), json!(["shared"])), "{plan}");
        assert_eq!(of("rolebindings"), (json!(["shared"]), json!(["admins"])), "{plan}");
        assert_eq!(inputs.get("platform-components"), None, "{plan}");
    }
    assert_eq!(new.post(&accept_path(&new, ""), &json!({})).status, 200);
    old.wait_until("it serves again", || old.poll(DNS, "namespaces").status == 200);
    assert_eq!((ids(&old, "namespaces"), ids(&old, "rolebindings")), (vec![json!("shared")], vec![json!("admins")]));
    assert_eq!(statuses(&new)[1..], [changed(), changed()]);
}

#[test]
fn a_log_that_takes_inputs_from_a_protected_cluster_is_accepted_only_with_their_number() {
    let folder = fleet_on_disk();
    let server = start(&folder, None);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": true})).status, 200);
    stop(server);
    let (_old, new) = accepted_and_restored(&folder, &SWAPPED_PATHS);
    let plan = new.post(&accept_path(&new, "&dry_run=true"), &json!({})).json();
    assert_eq!(plan["refused"]["clusters"], json!([{"id": "c00000", "removed": 2}]), "{plan}");
    for query in ["", "&allow_removals=1"] {
        let refused = new.post(&accept_path(&new, query), &json!({}));
        assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("protected")), "{}", refused.body);
    }
    assert_eq!(new.post(&accept_path(&new, "&allow_removals=2"), &json!({})).status, 200);
}

/// What a template makes of an input with another default is not known, and another server may have the other files.
#[test]
fn a_log_with_another_default_counts_every_input_of_the_type() {
    let folder = fleet_on_disk();
    let edits = [(
        "cluster",
        "default: true\n              description: false makes",
        "default: false\n              description: false makes",
    )];
    let (old, new) = accepted_and_restored(&folder, &edits);
    assert_eq!(new.poll(DNS, "platform-components").json()["inputs"][0]["enabled"], json!(false));
    for server in [&old, &new] {
        let plan = server.post(&accept_path(server, "&dry_run=true"), &json!({})).json();
        let added = &plan["clusters"][0]["inputs"]["platform-components"]["added"];
        assert_eq!(added, &json!(["app", "base"]), "{plan}");
    }
}

/// Documents that differ are counted as ever where the types do not.
#[test]
fn a_log_with_the_same_types_is_planned_by_its_documents() {
    let folder = fleet_on_disk();
    run(&folder, &["backup", "older"]);
    let server = start(&folder, None);
    assert_eq!(server.post("/namespaces", &json!({"id": "late"})).status, 201);
    assert_eq!(server.put("/clusters/c00000/namespaces/late", &json!({})).status, 200);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": true})).status, 200);
    run(&folder, &["restore", "--replace", "older"]);
    server.wait_until("it has diverged", || server.get("/store").json()["status"] == "diverged");
    let plan = server.post(&accept_path(&server, "&dry_run=true"), &json!({})).json();
    let inputs = &plan["clusters"][0]["inputs"];
    assert_eq!(inputs, &json!({"namespaces": {"added": [], "changed": [], "removed": ["late"]}}), "{plan}");
    assert_eq!(plan["clusters"].as_array().map(Vec::len), Some(1), "{plan}");
    assert_eq!(server.post(&accept_path(&server, ""), &json!({})).status, 409);
    assert_eq!(server.post(&accept_path(&server, "&allow_removals=1"), &json!({})).status, 200);
}

/// Revisions of an accepted history are counted anew from where the overruled one left it: the same number is another document.
#[test]
fn a_precondition_of_an_overruled_history_holds_in_no_later_one() {
    let folder = fleet_on_disk();
    run(&folder, &["backup", "older"]);
    let server = start(&folder, None);
    let cluster = "/clusters/c00000";
    let set = |environment: &str| {
        let answer = server.patch(cluster, &json!({"environment": environment}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.headers["etag"].to_str().unwrap().to_owned()
    };
    set("qa");
    let overruled = set("prod");
    assert_eq!((overruled.as_str(), server.get("/clusters").headers["etag"].to_str().unwrap()), ("\"3\"", "\"3\""));
    let body = server.get(cluster).json();
    run(&folder, &["restore", "--replace", "older"]);
    server.wait_until("it has diverged", || server.get("/store").json()["status"] == "diverged");
    let accepted = server.post(&accept_path(&server, ""), &json!({}));
    assert_eq!((accepted.status, &accepted.json()["epoch"]), (200, &json!(1)), "{}", accepted.body);
    let now = set("stage");
    assert_eq!((now.as_str(), server.get("/clusters").headers["etag"].to_str().unwrap()), ("\"3.1\"", "\"3.1\""));

    for (name, is_refused) in [("if-match", true), ("if-none-match", false)] {
        let path = format!("{cluster}?dry_run=true");
        let status = |tag: &str| server.write("PUT", &path, &body, &[(name, tag)]).status;
        assert_eq!(status(&overruled), if is_refused { 412 } else { 200 });
        assert_eq!(status(&now), if is_refused { 200 } else { 412 });
    }
    for path in [cluster, "/clusters"] {
        let read = |tag: &str| {
            let headers = [("authorization", "Bearer read-token"), ("if-none-match", tag)];
            server.exchange("GET", path, &headers, None).status
        };
        assert_eq!((read(&overruled), read(&now)), (200, 304), "{path}");
    }

    let put = |query: &str| server.put(&format!("{cluster}?{query}"), &body);
    for query in ["expected_revision=3", "expected_revision=3&expected_epoch=0", "expected_epoch=2"] {
        let refused = put(query);
        assert_eq!((refused.status, &refused.json()["code"]), (412, &json!("fleet-changed")), "{query}");
    }
    let plan = put("dry_run=true").json();
    assert_eq!((&plan["revision"], &plan["epoch"]), (&json!(3), &json!(1)), "{plan}");
    assert_eq!(server.get_open("/ready").json()["epoch"], json!(1));
    assert_eq!(server.get("/types/changes").json()["epoch"], json!(1));
    assert_eq!(put("expected_revision=3&expected_epoch=1").status, 200);

    // The same backup again: an epoch that neither history has had.
    run(&folder, &["restore", "--replace", "older"]);
    server.wait_until("it has diverged", || server.get("/store").json()["status"] == "diverged");
    let accepted = server.post(&accept_path(&server, ""), &json!({}));
    assert_eq!((accepted.status, &accepted.json()["epoch"]), (200, &json!(2)), "{}", accepted.body);
}
