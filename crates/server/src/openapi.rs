//! The OpenAPI document, derived from the resource types, the bodies of `api`, and what the mode serves.
//!
//! A test compares it with the router: every route is described, and every described route answers.

mod operators;
mod parameters;
mod polls;

use api::{DocumentProblem, Health, ProblemCounts, ProblemDetails, Readiness, Schemas, StoreState, TypeChanges};
use model::{Map, Registry, Value, yaml};
use serde_json::json;

use crate::config::Mode;

/// The document, as YAML.
pub fn document(registry: &Registry, mode: Mode) -> Result<String, yaml::EmitError> {
    let mut paths = json!({});
    let mut schemas = Schemas::default();
    let mut documents = polls::describe(registry, &mut paths, &mut schemas);
    service(&mut paths, &mut schemas);
    if mode == Mode::Crud {
        documents.extend(operators::describe(registry, &mut paths, &mut schemas));
    }
    let problem = schemas.answer::<ProblemDetails>();
    let schemas: Map = schemas.into_components().into_iter().chain(documents).collect();
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
            {"name": "documents", "description": "The documents of the fleet. Reading takes the read token, writing the write token."},
            {"name": "clusters", "description": "What operators do most with a cluster."},
            {"name": "changes", "description": "The audit trail, and going back."},
            {"name": "operators", "description": "For the people who run the fleet."},
            {"name": "service", "description": "Probes, metrics and this document; no token."}
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters::all(registry),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "The request was not answered as asked. Flux keeps everything on any such answer.",
                    "content": {"application/problem+json": {"schema": problem}}
                },
                "TooManyRequests": {
                    "description": "Too many requests of this sort are under way. Nothing was done.",
                    "headers": {"Retry-After": {
                        "schema": {"type": "integer"}, "description": "After how many seconds to try again."
                    }},
                    "content": {"application/problem+json": {"schema": problem}}
                }
            }
        }
    }))
}

/// `platform_component` as `PlatformComponent`.
fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split(['_', '-']).filter(|word| !word.is_empty()).map(capital).collect()
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn parameter(name: &str) -> Value {
    json!({"$ref": format!("#/components/parameters/{name}")})
}

/// One operation, and how it answers when all is well.
struct Operation(Value);

impl Operation {
    fn new(tag: &str, id: &str, summary: &str, answer: &Value) -> Self {
        Self::answering(tag, id, summary, "200", JSON, answer)
    }

    fn answering(tag: &str, id: &str, summary: &str, status: &str, media: &str, answer: &Value) -> Self {
        let mut operation = json!({
            "operationId": id, "tags": [tag], "summary": summary,
            "responses": {
                status: {"description": "Done as asked.", "content": {media: {"schema": answer}}},
                "default": {"$ref": "#/components/responses/Problem"}
            }
        });
        match tag {
            "service" => operation["security"] = json!([]),
            // Limits say by themselves which requests are too many; polls have none.
            "flux" => {}
            _ => operation["responses"]["429"] = json!({"$ref": "#/components/responses/TooManyRequests"}),
        }
        Self(operation)
    }

    /// With parameters, in the path, the query or the headers.
    fn with(mut self, parameters: Vec<Value>) -> Self {
        self.0["parameters"] = Value::Array(parameters);
        self
    }

    /// With a body of a schema.
    fn taking(self, schema: &Value) -> Self {
        self.taking_any(&json!({JSON: {"schema": schema}}))
    }

    /// With a body of one of several media types.
    fn taking_any(mut self, content: &Value) -> Self {
        self.0["requestBody"] = json!({"required": true, "content": content});
        self
    }

    /// With one more good answer.
    fn or(mut self, status: &str, response: Value) -> Self {
        self.0["responses"][status] = response;
        self
    }

    /// With a failure of the server that is an answer here: a list that is not known to be whole is not given.
    fn or_incomplete(self) -> Self {
        self.or("500", json!({"$ref": "#/components/responses/Problem"}))
    }

    /// With headers in its good answer.
    fn with_headers(mut self, headers: Value) -> Self {
        self.0["responses"]["200"]["headers"] = headers;
        self
    }

    /// With a limit on how many of its sort are under way at a time.
    fn limited(self) -> Self {
        self.or("429", json!({"$ref": "#/components/responses/TooManyRequests"}))
    }

    /// With the failure of a server that has nothing to serve there yet, or is not sure that it may.
    fn or_unavailable(self) -> Self {
        self.or("503", json!({"$ref": "#/components/responses/Problem"}))
    }

    /// Enters it at a path.
    fn at(self, paths: &mut Value, path: &str, method: &str) {
        paths[path][method] = self.0;
    }
}

const JSON: &str = "application/json";

/// A schema as documents are held to it: an object that lists its fields has no others. Our own words are left out, and the one
/// that `OpenAPI` 3.0 does not know.
fn closed(schema: &Value) -> Value {
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

fn service(paths: &mut Value, schemas: &mut Schemas) {
    let text = json!({"type": "string"});
    let types = "Where this server's files and the change log differ on how resource types are served.";
    let counted = "How many problems stored documents have, in all and by rule.";
    let problems = schemas.answer::<Vec<DocumentProblem>>();
    let page = ["ProblemRule", "ProblemKind", "ProblemId", "ProblemLimit", "Offset"].map(parameter).to_vec();
    Operation::new("operators", "listProblems", "What is wrong with stored documents, a page of it.", &problems)
        .with(page)
        .with_headers(json!({
            "X-Total-Count": {"schema": {"type": "integer"}, "description": "How many there are on all pages."},
            "Link": {"schema": {"type": "string"}, "description": "The next page, if there is one."}
        }))
        .at(paths, "/problems", "get");
    for (path, id, tag, summary, media, schema) in [
        ("/problems/counts", "countProblems", "operators", counted, JSON, schemas.answer::<ProblemCounts>()),
        (
            "/store",
            "getStore",
            "operators",
            "What is served, and where the change log ends.",
            JSON,
            schemas.answer::<StoreState>(),
        ),
        ("/types/changes", "getTypeChanges", "operators", types, JSON, schemas.answer::<TypeChanges>()),
        ("/health", "health", "service", "The process is alive.", JSON, schemas.answer::<Health>()),
        ("/ready", "ready", "service", "Polls can be answered.", JSON, schemas.answer::<Readiness>()),
        ("/openapi.yaml", "openapi", "service", "This document.", "application/yaml", json!({})),
        ("/metrics", "metrics", "service", "Metrics for Prometheus.", "text/plain", text),
    ] {
        Operation::answering(tag, id, summary, "200", media, &schema).at(paths, path, "get");
    }
}
