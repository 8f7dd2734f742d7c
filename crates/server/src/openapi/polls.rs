//! What clusters poll.

use api::{ClusterIdentity, NoneInput, Schemas};
use model::{Map, Registry, ResourceType, Value};
use serde_json::json;

use super::{Operation, camel, closed, parameter, reference};

/// Describes the operations, and answers the schemas of the inputs.
pub(super) fn describe(registry: &Registry, paths: &mut Value, schemas: &mut Schemas) -> Map {
    let mut documents = Map::new();
    let Some(clusters) = registry.by_kind(ResourceType::CLUSTER) else { return documents };
    let summary = "The live clusters, or a part of them, for what provisions them.";
    let operation = Operation::new("flux", "listClusterInputs", summary, &inputs(clusters, schemas));
    let part = ["Empty", "Environment", "Label", "Shard"].map(parameter).to_vec();
    let operation = operation.with(part).or_incomplete().or_unavailable().limited();
    operation.at(paths, "/api/v2/flux/clusters", "get");
    documents.insert(input_name(clusters), cluster_input(clusters));
    let parameters = ["ClusterDns", "ApiUrl", "Interval", "CertSecret", "FluxInstance"];
    Operation::answering(
        "flux",
        "bootstrapCluster",
        "Everything that a new cluster needs but the token, for kubectl apply.",
        "200",
        "application/yaml",
        &json!({}),
    )
    .with(parameters.map(parameter).to_vec())
    .at(paths, "/api/v2/flux/clusters/{cluster_dns}/bootstrap", "get");
    for ty in registry.definitions() {
        let summary = format!("What one cluster gets of type {}.", ty.kind);
        let operation = Operation::new("flux", &format!("poll{}", camel(&ty.plural)), &summary, &inputs(ty, schemas));
        let path = format!("/api/v2/flux/clusters/{{cluster_dns}}/{}", ty.path);
        let operation = operation.with(vec![parameter("ClusterDns"), parameter("Empty")]);
        operation.or_incomplete().or_unavailable().at(paths, &path, "get");
        documents.insert(input_name(ty), input(ty, clusters, schemas));
    }
    documents
}

fn input_name(ty: &ResourceType) -> String {
    format!("{}Input", camel(ty.kind.as_str()))
}

/// The schema of an answer.
pub(super) fn inputs(ty: &ResourceType, schemas: &mut Schemas) -> Value {
    let any = json!([reference(&input_name(ty)), schemas.answer::<NoneInput>()]);
    let list = json!({"type": "array", "items": {"anyOf": any}});
    json!({"type": "object", "required": ["inputs"], "properties": {"inputs": list}})
}

/// The schema of a type's inputs: its fields, nested as it declares, and what merging adds.
fn input(ty: &ResourceType, clusters: &ResourceType, schemas: &mut Schemas) -> Value {
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
    properties.insert("cluster".to_owned(), schemas.answer::<ClusterIdentity>());
    let mut schema = json!({"type": "object", "required": ["id", "cluster"], "properties": properties});
    if !ty.description.is_empty() {
        schema["description"] = json!(ty.description);
    }
    schema
}

fn cluster_input(clusters: &ResourceType) -> Value {
    json!({"type": "object", "required": ["id"], "description": clusters.description, "properties": fields(clusters)})
}

/// The fields of a type that reach Flux.
fn fields(ty: &ResourceType) -> Map {
    let mut fields = ty.properties().cloned().unwrap_or_default();
    fields.retain(|name, _| ty.fields.as_ref().is_none_or(|only| only.contains(name)));
    fields.into_iter().map(|(name, schema)| (name, closed(&schema))).collect()
}
