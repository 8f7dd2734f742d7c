//! Bodies: each is of the type that clients read, and no handler writes one by hand.

use std::{fs, path::Path};

use api::{
    ChangeDetails, ChangeSummary, ClusterIdentity, DocumentProblem, Health, HistoryEntry, NoneInput, Plan,
    ProblemCounts, ProblemDetails, Readiness, StoreState, TypeChanges, TypeDescription, WrittenChange,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::harness::Server;

/// A body that a handler wrote with `json!` would be a shape that the client, the CLI and the OpenAPI document do not know.
#[test]
fn no_handler_writes_json_by_hand() {
    let handlers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handlers");
    let mut count = 0;
    for entry in fs::read_dir(handlers).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        assert!(!source.contains("json!"), "{} writes JSON with json!: use a type of crates/api", path.display());
        count += 1;
    }
    assert!(count > 30, "only {count} handlers were read");
}

/// Reads a body as its type and writes it again, which must be the same: then the type has all that the server sends.
fn is_of_type<T: Serialize + DeserializeOwned>(body: &str) {
    let read: T = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let sent: Value = serde_json::from_str(body).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), sent);
}

#[test]
fn every_answer_is_of_the_type_that_clients_read() {
    let server = Server::crud_with(&json!({
        "namespaces": [{"id": "a"}],
        "clusters": [{
            "id": "c", "cluster_name": "c", "cluster_dns": "c.example", "environment": "dev",
            "namespaces": [{"id": "a"}, {"id": "missing"}]
        }]
    }));
    is_of_type::<Plan>(&server.patch("/namespaces/a?dry_run=true", &json!({"labels": {"x": "y"}})).body);
    let write = json!({"op": "patch", "kind": "namespace", "id": "a", "body": {"labels": {"x": "y"}}});
    let headers = [("x-change-reason", "a reason")];
    is_of_type::<WrittenChange>(&server.write("POST", "/batch", &json!({"writes": [write]}), &headers).body);
    is_of_type::<Health>(&server.get_open("/health").body);
    is_of_type::<Readiness>(&server.get_open("/ready").body);
    is_of_type::<StoreState>(&server.get("/store").body);
    is_of_type::<Vec<TypeDescription>>(&server.get("/types").body);
    is_of_type::<TypeChanges>(&server.get("/types/changes").body);
    is_of_type::<Vec<DocumentProblem>>(&server.get("/problems").body);
    is_of_type::<ProblemCounts>(&server.get("/problems/counts").body);
    is_of_type::<Vec<ChangeSummary>>(&server.get("/changes").body);
    is_of_type::<ChangeDetails>(&server.get("/changes/2").body);
    is_of_type::<Vec<HistoryEntry>>(&server.get("/namespaces/a/history").body);
    is_of_type::<ProblemDetails>(&server.get("/changes/7").body);
    is_of_type::<ProblemDetails>(&server.post("/namespaces", &json!({"id": "-", "x": 1})).body);
}

/// Polls are answered with prepared bytes, which no type writes.
#[test]
fn the_prepared_bytes_of_a_poll_are_what_the_types_describe() {
    let server = Server::crud_with(&json!({
        "namespaces": [{"id": "a"}],
        "clusters": [
            {"id": "c", "cluster_name": "c", "cluster_dns": "c.example", "environment": "dev", "namespaces": [{"id": "a"}]},
            {"id": "empty", "cluster_name": "empty", "cluster_dns": "empty.example", "environment": "dev"}
        ]
    }));
    let some = server.poll("c.example", "namespaces").json();
    is_of_type::<ClusterIdentity>(&some["inputs"][0]["cluster"].to_string());
    let none = server.poll("empty.example", "namespaces?empty=explicit").json();
    is_of_type::<NoneInput>(&none["inputs"][0].to_string());
}
