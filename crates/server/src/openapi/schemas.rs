//! Schemas and parameters that several operations share.

use model::{MAX_SAFE_INTEGER, Map, Value};
use serde_json::json;

use super::reference;
use crate::query::MAX_COUNT;

/// A declared schema as documents are held to it: an object that lists its fields has no others. Our own words are left
/// out.
pub(super) fn closed(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut closed_schema = Map::new();
    for (word, value) in schema.iter().filter(|(word, _)| !word.starts_with("x-")) {
        let value = match (word.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), closed(field))).collect()
            }
            ("items" | "additionalProperties", value) => closed(value),
            (_, value) => value.clone(),
        };
        closed_schema.insert(word.clone(), value);
    }
    if closed_schema.contains_key("properties") {
        closed_schema.entry("additionalProperties").or_insert(json!(false));
    }
    Value::Object(closed_schema)
}

pub(super) fn shared() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let object = json!({"type": "object"});
    let told = json!({
        "type": "object", "required": ["kind", "id", "op"],
        "properties": {"kind": text, "id": text, "op": {"type": "string", "enum": ["put", "retire", "remove"]}}
    });
    let heading = json!({"revision": number, "at": {"type": "string", "format": "date-time"}, "actor": text, "reason": text, "request_id": text, "overrules": text});
    let with = |more: Value| {
        let mut properties = heading.clone();
        for (name, schema) in more.as_object().into_iter().flatten() {
            properties[name] = schema.clone();
        }
        json!({"type": "object", "required": ["revision", "at", "actor"], "properties": properties})
    };
    json!({
        "ClusterIdentity": {
            "type": "object", "required": ["name", "dns", "environment"],
            "properties": {"name": text, "dns": text, "environment": text}
        },
        "NoneInput": {
            "type": "object", "required": ["id", "none"], "description": "Says that there are no inputs.",
            "properties": {
                "id": {"type": "string", "enum": ["none"]}, "none": {"type": "boolean", "enum": [true]},
                "cluster": reference("ClusterIdentity")
            }
        },
        "FieldError": {
            "type": "object", "required": ["pointer", "rule", "message"],
            "properties": {"document": text, "pointer": text, "rule": text, "message": text}
        },
        "Problem": {
            "type": "object", "required": ["type", "title", "status", "code", "detail"],
            "description": "RFC 9457 problem details.",
            "properties": {
                "type": text, "title": text, "status": number, "detail": text,
                "code": {"type": "string", "description": "Stable; for programs."},
                "errors": {"type": "array", "items": reference("FieldError")}
            },
            "example": {
                "type": "about:blank", "title": "Not Found", "status": 404, "code": "unknown-cluster",
                "detail": "no cluster has this DNS name"
            }
        },
        "DocumentProblem": {
            "type": "object", "required": ["kind", "id", "pointer", "rule", "message"],
            "properties": {"kind": text, "id": text, "pointer": text, "rule": text, "message": text}
        },
        "Ready": {
            "type": "object", "required": ["status", "version", "revision", "age_seconds", "store"],
            "properties": {
                "status": text, "version": text, "revision": number,
                "age_seconds": {"type": "number", "description": "Time since the picture was last known to be at the head of the log."},
                "store": {"type": "string", "enum": ["starting", "following", "unavailable", "diverged"]}
            }
        },
        "Point": point(),
        "Store": store(),
        "Accepted": {
            "type": "object", "required": ["revision", "epoch", "overrules"],
            "properties": {"revision": number, "epoch": number, "overrules": text}
        },
        "ResourceType": {
            "type": "object", "required": ["kind", "plural", "path", "description", "patchable", "nest", "filters", "schema"],
            "properties": {
                "kind": text, "plural": text, "path": text, "description": text, "patchable": {"type": "boolean"},
                "list": {"type": "string", "description": "The list of a cluster that refers to it."},
                "nest": {"type": "object", "additionalProperties": {"type": "array", "items": text}},
                "filters": {"type": "array", "items": text, "description": "Fields by which documents can be filtered."},
                "schema": {"type": "object", "description": "The JSON Schema of a document."},
                "template": {"type": "string", "description": "What an input, $in, becomes on a cluster."}
            }
        },
        "Written": {
            "type": "object", "required": ["revision", "documents"],
            "properties": {"revision": number, "documents": {"type": "array", "items": told}}
        },
        "Change": with(json!({"writes": {"type": "array", "items": told}})),
        "ChangeWithDocuments": with(json!({"epoch": number, "parent": text, "digest": text, "writes": {"type": "array", "items": {
            "type": "object", "required": ["kind", "id", "op"],
            "properties": {"kind": text, "id": text, "op": text, "before": object, "after": object}
        }}})),
        "HistoryEntry": with(json!({"op": text, "body": object})),
        "Plan": plan(),
        "JsonPatch": {"type": "array", "items": json_patch()},
        "Batch": batch()
    })
}

/// A place in the history of a log.
fn point() -> Value {
    let number = json!({"type": "integer"});
    json!({
        "type": "object", "required": ["store", "epoch", "revision", "digest"],
        "description": "A place in the history of a log.",
        "properties": {
            "store": {"type": "string", "format": "uuid", "description": "The name of the log, kept wherever it is moved to."},
            "epoch": {"type": "integer", "description": "How often an operator has accepted another history."},
            "revision": number,
            "digest": {"type": "string", "description": "Of the change, and of everything before it."}
        }
    })
}

/// What is served, and what the log says.
fn store() -> Value {
    json!({
        "type": "object", "required": ["status", "age_seconds", "picture", "log"],
        "properties": {
            "status": {"type": "string", "enum": ["starting", "following", "unavailable", "diverged"]},
            "age_seconds": {"type": "number"}, "picture": reference("Point"),
            "log": {"description": "Where the log ends; null while it cannot be read.", "nullable": true, "allOf": [reference("Point")]}
        }
    })
}

/// One operation of RFC 6902.
fn json_patch() -> Value {
    let pointer = json!({"type": "string", "pattern": "^(/([^/~]|~[01])*)*$"});
    let step = |ops: &[&str], more: &str, schema: Value| {
        let properties = json!({"op": {"type": "string", "enum": ops}, "path": pointer, more: schema});
        json!({"type": "object", "required": ["op", "path", more], "properties": properties})
    };
    let remove = json!({"op": {"type": "string", "enum": ["remove"]}, "path": pointer});
    json!({
        "oneOf": [
            step(&["add", "replace", "test"], "value", json!({})),
            step(&["move", "copy"], "from", pointer.clone()),
            {"type": "object", "required": ["op", "path"], "properties": remove}
        ],
        "example": {"op": "replace", "path": "/environment", "value": "qa"}
    })
}

/// What a dry run answers.
fn plan() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let ids = json!({"type": "array", "items": text});
    json!({
        "type": "object", "required": ["dry_run", "revision", "documents", "clusters", "totals"],
        "description": "What a change would do. Nothing was written.",
        "properties": {
            "dry_run": {"type": "boolean", "enum": [true]}, "revision": number,
            "documents": {"type": "array", "items": {
                "type": "object", "required": ["kind", "id", "op", "diff"],
                "properties": {"kind": text, "id": text, "op": text, "diff": {"type": "array", "items": {
                    "type": "object", "required": ["pointer"], "properties": {"pointer": text, "before": {}, "after": {}}
                }}}
            }},
            "clusters": {"type": "array", "items": {
                "type": "object", "required": ["id", "environment", "inputs"],
                "properties": {"id": text, "environment": text, "inputs": {"type": "object", "additionalProperties": {
                    "type": "object", "required": ["added", "changed", "removed"],
                    "properties": {"added": ids, "changed": ids, "removed": ids}
                }}}
            }},
            "totals": {"type": "object", "additionalProperties": {
                "type": "object", "required": ["clusters", "added", "changed", "removed"],
                "properties": {"clusters": number, "added": number, "changed": number, "removed": number}
            }}
        }
    })
}

/// A batch: many edits, each of which sees the ones before it.
fn batch() -> Value {
    let text = json!({"type": "string"});
    let object = json!({"type": "object"});
    let edit = |op: &str, required: &[&str], properties: Value| {
        let mut required = required.to_vec();
        required.insert(0, "op");
        let mut all = json!({"op": {"type": "string", "enum": [op]}});
        for (name, schema) in properties.as_object().into_iter().flatten() {
            all[name] = schema.clone();
        }
        json!({"type": "object", "required": required, "properties": all, "additionalProperties": false})
    };
    let document = json!({"kind": text, "id": text, "body": object});
    let reference = json!({"cluster": text, "kind": text, "id": text, "body": object});
    let edits = [
        edit("create", &["kind", "body"], json!({"kind": text, "body": object})),
        edit("put", &["kind", "id", "body"], document.clone()),
        edit("patch", &["kind", "id", "body"], document),
        edit("delete", &["kind", "id"], json!({"kind": text, "id": text, "cascade": {"type": "boolean"}})),
        edit("restore", &["id"], json!({"id": text})),
        edit("purge", &["id"], json!({"id": text})),
        edit("assign", &["cluster", "kind", "id"], reference),
        edit("unassign", &["cluster", "kind", "id"], json!({"cluster": text, "kind": text, "id": text})),
    ];
    json!({
        "type": "object", "required": ["writes"], "additionalProperties": false,
        "properties": {"writes": {"type": "array", "items": {"oneOf": edits}}},
        "example": {"writes": [
            {"op": "create", "kind": "namespace", "body": {"id": "team-sandbox", "labels": {"team": "sandbox"}}},
            {"op": "assign", "cluster": "demo-cluster-01", "kind": "namespace", "id": "team-sandbox"}
        ]}
    })
}

pub(super) fn parameters() -> Value {
    let query = |name: &str, schema: Value, text: &str| json!({"name": name, "in": "query", "schema": schema, "description": text});
    let header = |name: &str, text: &str| json!({"name": name, "in": "header", "schema": {"type": "string"}, "description": text});
    let path = |name: &str, text: &str, example: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}, "description": text, "example": example});
    let flag = json!({"type": "boolean"});
    let count = json!({"type": "integer", "minimum": 0, "maximum": MAX_COUNT});
    let revision = json!({"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER});
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "ClusterDns": path("cluster_dns", "The cluster's DNS name; case and a trailing dot do not matter.", "demo-cluster-01.k8s.example.com"),
        "Id": path("id", "The document's id.", "podinfo"),
        "ClusterId": path("id", "The cluster's id.", "demo-cluster-01"),
        "RefId": path("ref_id", "The id of what the cluster refers to.", "podinfo"),
        "Component": path("component", "The id of the component that is patched.", "podinfo"),
        "PathRevision": {"name": "revision", "in": "path", "required": true, "schema": revision, "description": "A revision.", "example": 1},
        "Empty": query("empty", json!({"type": "string", "enum": ["explicit"]}), "Say \"no inputs\" by the one record {\"id\": \"none\", \"none\": true} instead of an empty list."),
        "ApiUrl": query("api_url", json!({"type": "string", "format": "uri", "example": "https://fleet.example.com"}), "What the cluster calls; needed where the server has no PUBLIC_URL. Plain http sends the token readable."),
        "Interval": query("interval", json!({"type": "string", "pattern": "^([1-9][0-9]*h)?([1-9][0-9]*m)?([1-9][0-9]*s)?$", "default": "5m", "example": "5m"}), "How often the cluster polls, from 1s to 24h; each cluster gets up to a tenth less, so that a fleet spreads out."),
        "CertSecret": query("cert_secret", json!({"type": "string", "pattern": "^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"}), "The Secret on the cluster with ca.crt, or with a client's tls.crt and tls.key."),
        "FluxInstance": query("flux_instance", json!({"type": "boolean", "default": true}), "Whether Flux itself is installed too."),
        "DryRun": query("dry_run", flag.clone(), "Answer what would change, and change nothing."),
        "ExpectedRevision": query("expected_revision", revision.clone(), "Only if the fleet is still at this revision, such as that of a plan; else 412."),
        "ExpectedDigest": {"name": "expected_digest", "in": "query", "required": true, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "description": "The digest of the log that was looked at; if it is another one, 412."},
        "Served": query("served", json!({"type": "string", "pattern": "^[0-9a-f]{64}$"}), "The digest of what a server elsewhere serves and holds on to; else of what this one does."),
        "Cascade": query("cascade", flag.clone(), "Remove what refers to the document, in the same change."),
        "Purge": query("purge", flag.clone(), "Forget a decommissioned cluster: its name is unknown again."),
        "All": query("all", flag.clone(), "Say that every document is meant."),
        "Decommissioned": query("decommissioned", flag, "The decommissioned clusters instead of those in force."),
        "Limit": query("limit", count.clone(), "The most to answer."),
        "Offset": query("offset", count, "How many to pass over first."),
        "Label": query("label", json!({"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}}), "Only documents with this label, as key=value."),
        "Revision": query("revision", revision.clone(), "As it was at this revision."),
        "Before": query("before", revision.clone(), "Only what came before this revision: the last one of the page before."),
        "After": query("after", revision, "Begin after this revision."),
        "Kind": query("kind", json!({"type": "string", "minLength": 1}), "Only changes of documents of this type."),
        "ChangedId": query("id", json!({"type": "string", "pattern": "^[A-Za-z0-9][-._:A-Za-z0-9]{0,252}$"}), "Only changes of documents of this id."),
        "Actor": query("actor", json!({"type": "string"}), "Only changes by this actor."),
        "Since": query("since", time.clone(), "Only changes at or after this time."),
        "Until": query("until", time, "Only changes before this time."),
        "IfMatch": header("If-Match", "Only if the document has this ETag."),
        "IfNoneMatch": header("If-None-Match", "Only if the document has another ETag."),
        "Reason": {
            "name": "X-Change-Reason", "in": "header", "schema": {"type": "string", "maxLength": 1000},
            "description": "Why, for the audit trail."
        }
    })
}
