//! Parameters that several operations share, by what they belong to.

use fleet::Rule;
use model::{MAX_SAFE_INTEGER, Map, Registry, Value};
use serde_json::json;

use crate::query::MAX_COUNT;

pub(super) fn all(registry: &Registry) -> Value {
    // A kind that is known no more is taken too, where documents of it are left.
    let kinds: Vec<_> = registry.types().map(|ty| ty.kind.as_str()).collect();
    let of_kinds = json!({
        "Kind": query("kind", json!({"type": "string", "enum": kinds}), "Only changes of documents of this type."),
        "ProblemKind": query("kind", json!({"type": "string", "enum": kinds}), "Only problems of documents of this type.")
    });
    let tables = [of_paths_and_polls(), of_edits(), of_reads(), of_problems(), of_kinds];
    let entries =
        tables.into_iter().filter_map(|table| if let Value::Object(table) = table { Some(table) } else { None });
    Value::Object(entries.flatten().collect::<Map>())
}

fn query(name: &str, schema: Value, text: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": text})
}

fn header(name: &str, text: &str) -> Value {
    json!({"name": name, "in": "header", "schema": {"type": "string"}, "description": text})
}

fn path(name: &str, text: &str, example: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}, "description": text, "example": example})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": MAX_COUNT})
}

fn revision() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER})
}

fn of_paths_and_polls() -> Value {
    json!({
        "ClusterDns": path("cluster_dns", "The cluster's DNS name; case and a trailing dot do not matter.", "demo-cluster-01.k8s.example.com"),
        "Id": path("id", "The document's id.", "podinfo"),
        "ClusterId": path("id", "The cluster's id.", "demo-cluster-01"),
        "RefId": path("ref_id", "The id of what the cluster refers to.", "podinfo"),
        "Component": path("component", "The id of the component that is patched.", "podinfo"),
        "PathRevision": {"name": "revision", "in": "path", "required": true, "schema": revision(), "description": "A revision.", "example": 1},
        "Empty": query("empty", json!({"type": "string", "enum": ["explicit"]}), "Answer \"no inputs\" with the one record {\"id\": \"none\", \"none\": true} instead of an empty list."),
        "Environment": query("environment", json!({"type": "string", "minLength": 1}), "Only clusters of this environment."),
        "Shard": query("shard", json!({"type": "string", "pattern": "^[1-9][0-9]{0,3}/[1-9][0-9]{0,3}$", "example": "1/4"}), "Only the clusters of this shard, as i/n with i from 1 to n, and n at most 1,000."),
        "ApiUrl": query("api_url", json!({"type": "string", "format": "uri", "example": "https://fleet.example.com"}), "What the cluster calls; needed where the server has no PUBLIC_URL. With plain http, the token can be read on the network."),
        "Interval": query("interval", json!({"type": "string", "pattern": "^([1-9][0-9]*h)?([1-9][0-9]*m)?([1-9][0-9]*s)?$", "default": "5m", "example": "5m"}), "How often the cluster polls, from 1s to 24h; each cluster gets up to a tenth less, so that a fleet spreads out."),
        "CertSecret": query("cert_secret", json!({"type": "string", "pattern": "^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"}), "The Secret on the cluster with ca.crt, or with a client's tls.crt and tls.key."),
        "FluxInstance": query("flux_instance", json!({"type": "boolean", "default": true}), "Whether Flux itself is installed too.")
    })
}

fn of_edits() -> Value {
    json!({
        "DryRun": query("dry_run", flag(), "Answer what would change, and change nothing."),
        "ExpectedRevision": query("expected_revision", revision(), "Only if the fleet is still at this revision, such as that of a plan; else 412."),
        "ExpectedEpoch": query("expected_epoch", count(), "Only if the change log is in this epoch; else 412. In an epoch that is not 0, expected_revision needs it."),
        "PlannedRevision": {"name": "expected_revision", "in": "query", "required": true, "schema": revision(), "description": "The revision of the accepted plan; if the fleet is at another, 412. With dry_run it may be left out."},
        "AllowRemovals": query("allow_removals", count(), "How many inputs the change may take from clusters with deletion_protection; with fewer than it takes, 409."),
        "ExpectedChanges": {"name": "expected_changes", "in": "query", "required": true, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "description": "The digest that GET /types/changes gave; if the files and the change log differ in another way, 412. With dry_run it may be left out."},
        "ExpectedDigest": {"name": "expected_digest", "in": "query", "required": true, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "description": "The digest of the accepted change log; if it has another one, 412."},
        "Served": query("served", json!({"type": "string", "pattern": "^[0-9a-f]{64}$"}), "The digest of what another server serves and keeps; by default of what this one serves."),
        "Cascade": query("cascade", flag(), "Remove what refers to the document, in the same change."),
        "Purge": query("purge", flag(), "Remove a decommissioned cluster for good: its name is unknown again."),
        "All": query("all", flag(), "Needed to patch every document."),
        "IfMatch": header("If-Match", "Only if the document has this ETag."),
        "Reason": {
            "name": "X-Change-Reason", "in": "header", "schema": {"type": "string", "maxLength": 1000},
            "description": "Why, for the audit trail."
        }
    })
}

fn of_reads() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "Decommissioned": query("decommissioned", flag(), "The decommissioned clusters instead of those in force."),
        "Limit": query("limit", count(), "The most to answer."),
        "Offset": query("offset", count(), "How many to skip first."),
        "Label": query("label", json!({"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}}), "Only documents with this label, as key=value."),
        "Revision": query("revision", revision(), "As it was at this revision."),
        "Before": query("before", revision(), "Only what came before this revision: the last one of the page before."),
        "After": query("after", revision(), "Begin after this revision."),
        "ChangedId": query("id", json!({"type": "string", "pattern": "^[A-Za-z0-9][-._:A-Za-z0-9]{0,252}$"}), "Only changes of documents of this id."),
        "Actor": query("actor", json!({"type": "string"}), "Only changes by this actor."),
        "Since": query("since", time.clone(), "Only changes at or after this time."),
        "Until": query("until", time, "Only changes before this time."),
        "IfNoneMatch": header("If-None-Match", "Only if the document has another ETag.")
    })
}

/// What problems can be filtered by.
fn of_problems() -> Value {
    let id = json!({"type": "string", "pattern": "^[A-Za-z0-9][-._:A-Za-z0-9]{0,252}$"});
    json!({
        "ProblemRule": query("rule", json!({"type": "string", "enum": Rule::ALL.map(Rule::name)}), "Only problems of this rule."),
        "ProblemId": query("id", id, "Only problems of documents of this id."),
        "ProblemLimit": query("limit", count(), "The most to answer: 1,000 by default, and 10,000 at most.")
    })
}
