//! Schemas that several operations share.

use model::{Map, Value, limits::ERRORS};
use serde_json::json;

use super::reference;

/// A declared schema as documents are held to it: an object that lists its fields has no others. Our own words are left
/// out, and the one that `OpenAPI` 3.0 does not know.
pub(super) fn closed(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut closed_schema = Map::new();
    for (word, value) in schema.iter().filter(|(word, _)| !word.starts_with("x-") && *word != "propertyNames") {
        let value = match (word.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), closed(field))).collect()
            }
            ("items" | "additionalProperties", value) => closed(value),
            ("anyOf", Value::Array(schemas)) => schemas.iter().map(closed).collect(),
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
                "errors": {"type": "array", "items": reference("FieldError"), "maxItems": ERRORS},
                "more_errors": {"type": "integer", "description": "How many broken rules are not listed."}
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
        "ProblemCounts": {
            "type": "object", "required": ["total", "rules"],
            "properties": {"total": number, "rules": {"type": "object", "additionalProperties": number}},
            "example": {"total": 1, "rules": {"missing-definition": 1}}
        },
        "Ready": {
            "type": "object", "required": ["status", "version", "revision", "age_seconds", "store"],
            "properties": {
                "status": text, "version": text, "revision": number, "epoch": number,
                "age_seconds": {"type": "number", "description": "Time since the picture was last known to be at the head of the log."},
                "store": {"type": "string", "enum": ["starting", "following", "unavailable", "diverged"]},
                "types_changed": {"type": "array", "items": text, "description": "Paths that are not served, because this server's files of their types differ from the change log."}
            }
        },
        "TypeRecord": type_record(),
        "TypeChanges": type_changes(),
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
        "Change": with(json!({
            "writes": {"type": "array", "items": told, "description": "Of a large change the first ones."},
            "total": {"type": "integer", "description": "How many documents it wrote, where not all of them are in writes."}
        })),
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
            "dry_run": {"type": "boolean", "enum": [true]}, "revision": number, "epoch": number,
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
            }},
            "refused": {
                "type": "object", "required": ["code", "detail", "removed", "clusters"],
                "description": "What the change would take from clusters with deletion_protection, where it is refused for that.",
                "properties": {"code": text, "detail": text, "removed": number, "clusters": {"type": "array", "items": {
                    "type": "object", "required": ["id", "removed"], "properties": {"id": text, "removed": number}
                }}}
            }
        }
    })
}

/// How a resource type is served.
fn type_record() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object", "required": ["kind", "list", "path", "key"],
        "properties": {
            "kind": text, "list": text, "path": text, "key": text,
            "defaults": {"type": "object", "additionalProperties": true},
            "fields": {"type": "array", "items": text, "description": "The fields that reach Flux."},
            "nest": {
                "type": "object", "additionalProperties": {"type": "array", "items": text},
                "description": "Which of them stand in an object of an input, by the object's name."
            },
            "fixed": {"type": "array", "items": text, "description": "The fields that Kubernetes cannot change."},
            "ordered_by": {"type": "string", "description": "The field by which inputs have effective_depends_on."},
            "retired": {"type": "boolean", "description": "Whether it is accepted that the type is served no more."},
            "former_paths": {"type": "array", "items": text, "description": "Paths that it had, and that no other type has taken over."},
            "former_lists": {"type": "array", "items": text, "description": "Lists that it had, and that no other type has taken over."}
        }
    })
}

/// Where a server's files and the change log differ on how types are served.
fn type_changes() -> Value {
    json!({
        "type": "object", "required": ["revision", "digest", "changes", "plan"],
        "properties": {
            "revision": {"type": "integer"}, "epoch": {"type": "integer"},
            "digest": {"type": "string", "description": "Stands for the changes, for expected_changes."},
            "changes": {"type": "array", "items": {
                "type": "object", "required": ["change"],
                "properties": {
                    "change": {"type": "string", "enum": ["added", "changed", "removed"]},
                    "recorded": reference("TypeRecord"), "declared": reference("TypeRecord")
                }
            }},
            "plan": reference("Plan")
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
