//! The OpenAPI document, derived from the resource types.

use model::{Map, Registry, ResourceType, Value, yaml};
use serde_json::json;

/// The document, as YAML.
pub fn document(registry: &Registry) -> Result<String, impl std::error::Error + use<>> {
    let mut paths = service_paths();
    let mut schemas = shared_schemas();
    if let Some(clusters) = registry.by_kind(ResourceType::CLUSTER) {
        let operation = poll("listClusters", "The live clusters, for whoever provisions them.", clusters, json!([]));
        paths["/api/v2/flux/clusters"] = operation;
        schemas[input_name(clusters)] = cluster_input(clusters);
        for ty in registry.definitions() {
            let dns = json!([{
                "name": "cluster_dns", "in": "path", "required": true, "schema": {"type": "string"},
                "description": "The cluster's DNS name; case and a trailing dot do not matter.",
                "example": "demo-cluster-01.k8s.example.com"
            }]);
            let summary = format!("What one cluster gets of type {}.", ty.kind);
            let operation = poll(&format!("poll{}", camel(&ty.plural)), &summary, ty, dns);
            paths[format!("/api/v2/flux/clusters/{{cluster_dns}}/{}", ty.path)] = operation;
            schemas[input_name(ty)] = input(ty, clusters);
        }
    }
    yaml::write(&json!({
        "openapi": "3.0.3",
        "info": {
            "title": "flux-resourceset",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The desired state of a fleet of clusters, served as the inputs of Flux ResourceSets.",
            "license": {"name": "Apache-2.0"}
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [
            {"name": "flux", "description": "Polled by Flux Operator's ResourceSetInputProviders."},
            {"name": "operators", "description": "For the people who run the fleet."},
            {"name": "service", "description": "Probes, metrics and this document; no token."}
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": {
                "description": "The request was not answered as asked. Flux keeps everything on any such answer.",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
            }}
        }
    }))
}

fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split(['_', '-']).filter(|word| !word.is_empty()).map(capital).collect()
}

fn input_name(ty: &ResourceType) -> String {
    format!("{}Input", camel(ty.kind.as_str()))
}

/// A poll: its answer, and every way to be refused.
fn poll(id: &str, summary: &str, ty: &ResourceType, parameters: Value) -> Value {
    let mut parameters = parameters;
    if let Value::Array(all) = &mut parameters {
        all.push(json!({
            "name": "empty", "in": "query", "schema": {"type": "string", "enum": ["explicit"]},
            "description": "Say \"no inputs\" by the one record {\"id\": \"none\", \"none\": true} instead of an empty list."
        }));
    }
    let inputs = json!({"type": "array", "items": {"anyOf": [
        {"$ref": format!("#/components/schemas/{}", input_name(ty))},
        {"$ref": "#/components/schemas/NoneInput"}
    ]}});
    json!({"get": {
        "operationId": id, "tags": ["flux"], "summary": summary, "parameters": parameters,
        "responses": {
            "200": {"description": "All inputs, whole and in a stable order.", "content": {"application/json": {"schema": {
                "type": "object", "required": ["inputs"], "properties": {"inputs": inputs}
            }}}},
            "default": {"$ref": "#/components/responses/Problem"}
        }
    }})
}

/// The schema of a type's inputs: its fields, nested as it says, and what merging adds.
fn input(ty: &ResourceType, clusters: &ResourceType) -> Value {
    let mut properties = fields(ty);
    let list = &clusters.schema["properties"][&ty.list]["items"]["properties"];
    for (name, schema) in list.as_object().into_iter().flatten() {
        properties.entry(name.clone()).or_insert_with(|| schema.clone());
    }
    for nest in &ty.nests {
        let inner: Map = nest.fields.iter().filter_map(|field| properties.shift_remove_entry(field)).collect();
        properties.insert(nest.name.clone(), json!({"type": "object", "properties": inner}));
    }
    if ty.patchable {
        let free = |text: &str| json!({"type": "object", "additionalProperties": true, "description": text});
        properties.insert("patches".to_owned(), free("The cluster's patches, flat."));
        properties.insert("values".to_owned(), free("The patches as a tree of typed Helm values."));
    }
    if ty.ordered_by.is_some() {
        let text = "The dependencies that this cluster has enabled and that Flux can order.";
        let schema = json!({"type": "array", "items": {"type": "string"}, "description": text});
        properties.insert("effective_depends_on".to_owned(), schema);
    }
    properties.insert("cluster".to_owned(), json!({"$ref": "#/components/schemas/ClusterIdentity"}));
    json!({"type": "object", "required": ["id", "cluster"], "description": ty.description, "properties": properties})
}

fn cluster_input(clusters: &ResourceType) -> Value {
    json!({"type": "object", "required": ["id"], "description": clusters.description, "properties": fields(clusters)})
}

/// The fields of a type that reach Flux.
fn fields(ty: &ResourceType) -> Map {
    let mut fields = ty.properties().cloned().unwrap_or_default();
    fields.retain(|name, _| ty.fields.as_ref().is_none_or(|only| only.contains(name)));
    fields
}

fn shared_schemas() -> Value {
    let text = json!({"type": "string"});
    json!({
        "ClusterIdentity": {
            "type": "object", "required": ["name", "dns", "environment"],
            "properties": {"name": text, "dns": text, "environment": text}
        },
        "NoneInput": {
            "type": "object", "required": ["id", "none"], "description": "Says that there are no inputs.",
            "properties": {
                "id": {"type": "string", "enum": ["none"]}, "none": {"type": "boolean", "enum": [true]},
                "cluster": {"$ref": "#/components/schemas/ClusterIdentity"}
            }
        },
        "FieldError": {
            "type": "object", "required": ["pointer", "rule", "message"],
            "properties": {"pointer": text, "rule": text, "message": text}
        },
        "Problem": {
            "type": "object", "required": ["type", "title", "status", "code", "detail"],
            "description": "RFC 9457 problem details.",
            "properties": {
                "type": text, "title": text, "status": {"type": "integer"}, "detail": text,
                "code": {"type": "string", "description": "Stable; for programs."},
                "errors": {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}}
            }
        },
        "DocumentProblem": {
            "type": "object", "required": ["kind", "id", "pointer", "rule", "message"],
            "properties": {"kind": text, "id": text, "pointer": text, "rule": text, "message": text}
        },
        "Ready": {
            "type": "object", "required": ["status", "revision", "age_seconds", "store"],
            "properties": {
                "status": text, "revision": {"type": "integer"},
                "age_seconds": {"type": "number", "description": "Time since the picture was last known to be at the head of the log."},
                "store": {"type": "string", "enum": ["starting", "following", "unavailable", "behind"]}
            }
        }
    })
}

fn service_paths() -> Value {
    let json_media = "application/json";
    let status = json!({"type": "object", "properties": {"status": {"type": "string"}}});
    let ready = json!({"$ref": "#/components/schemas/Ready"});
    let problems = json!({"type": "array", "items": {"$ref": "#/components/schemas/DocumentProblem"}});
    let text = json!({"type": "string"});
    json!({
        "/problems": get("listProblems", "operators", "What is wrong with stored documents.", json_media, &problems),
        "/health": get("health", "service", "The process is alive.", json_media, &status),
        "/ready": get("ready", "service", "Polls can be answered.", json_media, &ready),
        "/openapi.yaml": get("openapi", "service", "This document.", "application/yaml", &text),
        "/metrics": get("metrics", "service", "Metrics for Prometheus.", "text/plain", &text)
    })
}

/// An operation without parameters; those of the service need no token.
fn get(id: &str, tag: &str, summary: &str, media: &str, schema: &Value) -> Value {
    let mut operation = json!({
        "operationId": id, "tags": [tag], "summary": summary,
        "responses": {
            "200": {"description": "OK", "content": {media: {"schema": schema}}},
            "default": {"$ref": "#/components/responses/Problem"}
        }
    });
    if tag == "service" {
        operation["security"] = json!([]);
    }
    json!({"get": operation})
}
