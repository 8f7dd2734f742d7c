//! Every body is read as it was written, and the schemas are in the words of OpenAPI 3.0.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::{Map, Value};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{json, value::RawValue};

use super::*;

/// Reads a text as a type and writes it again, which must be the same text.
fn round_trip<T: Serialize + DeserializeOwned>(value: &Value) {
    let text = value.to_string();
    let read: T = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

fn heading() -> Map {
    let digest = "ab".repeat(32);
    let heading = json!({
        "revision": 7, "at": "2026-01-31T12:00:00.5Z", "actor": "writer", "overrules": digest, "reason": "why", "request_id": "r"
    });
    heading.as_object().unwrap().clone()
}

fn with_heading(more: &Value) -> Value {
    Value::Object(heading().into_iter().chain(more.as_object().unwrap().clone()).collect())
}

#[test]
fn every_body_is_read_as_it_was_written() {
    let digest = "cd".repeat(32);
    let point = json!({"store": "018f3b6e-7c1a-7000-8000-000000000000", "epoch": 1, "revision": 7, "digest": digest});
    let write = json!({"kind": "namespace", "id": "a", "op": "put"});
    let plan = json!({"dry_run": true, "revision": 6, "documents": [], "clusters": [], "totals": {}});
    let details = json!({"epoch": 0, "parent": digest, "digest": digest, "writes": [
        {"kind": "namespace", "id": "a", "op": "put", "before": {"id": "a"}, "after": {"id": "a", "x": 1.5}}
    ]});
    round_trip::<ProblemDetails>(&json!({
        "type": "about:blank", "title": "Conflict", "status": 409, "code": "c", "detail": "d",
        "errors": [{"pointer": "/a", "rule": "r", "message": "m"}], "more_errors": 3
    }));
    round_trip::<DocumentProblem>(&json!({"kind": "cluster", "id": "a", "pointer": "", "rule": "r", "message": "m"}));
    round_trip::<ProblemCounts>(&json!({"total": 3, "rules": {"z": 1, "a": 2}}));
    round_trip::<ChangeSummary>(&with_heading(&json!({"writes": [write], "total": 70})));
    round_trip::<ChangeDetails>(&with_heading(&details));
    round_trip::<ChangeDetails<Box<RawValue>>>(&with_heading(&details));
    round_trip::<HistoryEntry>(&with_heading(&json!({"op": "put", "body": {"id": "a"}})));
    round_trip::<HistoryEntry<Box<RawValue>>>(&with_heading(&json!({"op": "put", "body": {"id": "a"}})));
    round_trip::<WrittenChange>(&json!({"revision": 7, "documents": [write]}));
    round_trip::<Readiness>(&json!({
        "status": "ok", "version": "1", "revision": 7, "age_seconds": 0.25, "store": "following", "types_changed": ["p"]
    }));
    round_trip::<StoreState>(&json!({"status": "diverged", "age_seconds": 1.5, "picture": point, "log": null}));
    round_trip::<StoreAcceptance>(&json!({"revision": 8, "epoch": 2, "overrules": digest}));
    round_trip::<TypeChanges>(
        &json!({"revision": 7, "digest": digest, "changes": [{"change": "added"}], "plan": plan}),
    );
    round_trip::<TypeDescription>(&json!({
        "kind": "k", "plural": "ks", "path": "k-s", "description": "d", "patchable": true, "nest": {"z": ["a"], "b": []},
        "filters": ["f"], "schema": {"type": "object"}, "list": "ks", "template": "t"
    }));
    let document = json!({
        "kind": "cluster", "id": "c", "revision": 7, "at": "2026-01-31T12:00:00.5Z", "actor": "writer", "reason": "why"
    });
    round_trip::<Explanation>(&json!({"cluster": "c", "kind": "k", "id": "a", "revision": 7, "fields": [
        {"pointer": "/a", "value": {"x": 1.50}, "source": {"kind": "reference", "document": document}, "hidden": [
            {"value": [], "source": {"kind": "default"}}
        ]},
        {"pointer": "/b", "value": null, "source": {"kind": "computed"}}
    ]}));
    round_trip::<NoneInput>(
        &json!({"id": "none", "none": true, "cluster": {"name": "n", "dns": "d", "environment": "e"}}),
    );
}

#[test]
fn every_write_of_a_batch_is_read_as_it_was_written() {
    let (kind, id, body) = ("namespace", "a", json!({"id": "a"}));
    round_trip::<Batch>(&json!({"writes": [
        {"op": "create", "kind": kind, "body": body},
        {"op": "put", "kind": kind, "id": id, "body": body},
        {"op": "patch", "kind": kind, "id": id, "body": body},
        {"op": "delete", "kind": kind, "id": id, "cascade": true},
        {"op": "restore", "id": id},
        {"op": "purge", "id": id},
        {"op": "assign", "cluster": "c", "kind": kind, "id": id, "body": body},
        {"op": "unassign", "cluster": "c", "kind": kind, "id": id}
    ]}));
    for unknown in [json!({"writes": [], "x": 1}), json!({"writes": [{"op": "purge", "id": id, "x": 1}]})] {
        assert!(serde_json::from_value::<Batch>(unknown).is_err());
    }
}

#[test]
fn schemas_are_in_the_words_of_openapi_3_0() {
    let mut schemas = Schemas::default();
    assert_eq!(schemas.answer::<Vec<DocumentProblem>>()["items"]["$ref"], "#/components/schemas/DocumentProblem");
    assert_eq!(schemas.request::<RevertTarget>()["properties"]["revision"]["maximum"], model::MAX_SAFE_INTEGER);
    schemas.answer::<StoreState>();
    schemas.answer::<HistoryEntry>();
    schemas.request::<Batch>();
    let components = schemas.into_components();
    let state = &components["Store"]["properties"];
    assert_eq!(state["log"]["nullable"], true, "{state}");
    assert_eq!(state["status"]["enum"], json!(["starting", "following", "unavailable", "diverged"]));
    // An optional field is left out, and never null.
    let entry = &components["HistoryEntry"];
    assert_eq!(entry["required"], json!(["revision", "at", "actor"]));
    assert_eq!(entry["properties"]["reason"]["type"], "string", "{entry}");
    assert_eq!(entry["properties"]["reason"].get("nullable"), None);
    // Whether references are removed too has a default, so a request may leave it out.
    let writes = components["BatchWrite"]["oneOf"].as_array().unwrap();
    let delete = writes.iter().find(|write| write["properties"]["op"]["enum"] == json!(["delete"])).unwrap();
    assert_eq!(delete["required"], json!(["op", "kind", "id"]));
    assert_eq!(delete["additionalProperties"], false);
}
