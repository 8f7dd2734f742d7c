//! What operators and auditors call, in mode crud.

use model::{MAX_SAFE_INTEGER, Registry, ResourceType, Value};
use serde_json::json;

use crate::handlers::{filters, is_list_of_references};

use super::{JSON, Operation, camel, parameter, polls, reference, schemas::closed};

pub(super) fn describe(registry: &Registry, paths: &mut Value, schemas: &mut Value) {
    for ty in registry.types() {
        schemas[camel(ty.kind.as_str())] = closed(&ty.schema);
        describe_documents(ty, paths);
    }
    describe_cluster(registry, paths);
    describe_changes(paths);
}

/// The parameters of every change.
fn of_change(mut first: Vec<Value>) -> Vec<Value> {
    first.extend([
        parameter("DryRun"),
        parameter("ExpectedRevision"),
        parameter("ExpectedEpoch"),
        parameter("AllowRemovals"),
        parameter("Reason"),
    ]);
    first
}

/// The parameters of every change to one document.
fn of_edit(first: Vec<Value>) -> Vec<Value> {
    let mut parameters = of_change(first);
    parameters.extend([parameter("IfMatch"), parameter("IfNoneMatch")]);
    parameters
}

fn or_plan(schema: &Value) -> Value {
    json!({"anyOf": [schema, reference("Plan")]})
}

/// Any object: a patch is checked by what it makes of the document.
fn object() -> Value {
    json!({"type": "object"})
}

fn list_of(schema: &str) -> Value {
    json!({"type": "array", "items": reference(schema)})
}

fn describe_documents(ty: &ResourceType, paths: &mut Value) {
    let (one, many, tag) = (camel(ty.kind.as_str()), camel(&ty.plural), "documents");
    let document = reference(&one);
    let path = format!("/{}", ty.plural);
    let page = ["Limit", "Offset", "Revision", "IfNoneMatch"].map(parameter).to_vec();
    let page = filter_parameters(ty, page);
    Operation::new(tag, &format!("list{many}"), &format!("The documents of type {}.", ty.kind), &list_of(&one))
        .with(page)
        .or("304", json!({"description": "The client has it already."}))
        .or_incomplete()
        .at(paths, &path, "get");
    let plan = json!({"description": "What would be done.", "content": {JSON: {"schema": reference("Plan")}}});
    Operation::answering(tag, &format!("create{one}"), &format!("Create a {}.", ty.kind), "201", JSON, &document)
        .with(of_edit(vec![]))
        .taking(&document)
        .or("200", plan)
        .at(paths, &path, "post");
    let summary = "One strategic merge patch over every match, as one change.";
    Operation::new(tag, &format!("bulkPatch{many}"), summary, &or_plan(&reference("Written")))
        .with(of_change(filter_parameters(ty, vec![parameter("All")])))
        .taking_any(&json!({
            "application/strategic-merge-patch+json": {"schema": object()},
            JSON: {"schema": object()}
        }))
        .or_incomplete()
        .at(paths, &path, "patch");
    describe_document(ty, &one, &format!("{path}/{{id}}"), paths);
    describe_past(ty, &one, &format!("{path}/{{id}}"), paths);
}

fn id_of(ty: &ResourceType) -> Vec<Value> {
    vec![parameter(if ty.is_cluster() { "ClusterId" } else { "Id" })]
}

fn describe_document(ty: &ResourceType, one: &str, path: &str, paths: &mut Value) {
    let (document, tag) = (reference(one), "documents");
    let mut read = id_of(ty);
    read.extend([parameter("Revision"), parameter("IfNoneMatch")]);
    Operation::new(tag, &format!("get{one}"), &format!("One {}, with its ETag.", ty.kind), &document)
        .with(read)
        .or("304", json!({"description": "The client has it already."}))
        .at(paths, path, "get");
    let summary = format!("Make a {} say this and no more. Without If-Match, the last writer wins.", ty.kind);
    Operation::new(tag, &format!("replace{one}"), &summary, &or_plan(&document))
        .with(of_edit(id_of(ty)))
        .taking(&replacement(ty))
        .at(paths, path, "put");
    let patches = json!({
        "application/merge-patch+json": {"schema": object()},
        "application/strategic-merge-patch+json": {"schema": object()},
        "application/json-patch+json": {"schema": reference("JsonPatch")},
        JSON: {"schema": object()}
    });
    let summary = format!("Change a {}. Concurrent patches never lose one another.", ty.kind);
    Operation::new(tag, &format!("patch{one}"), &summary, &or_plan(&document))
        .with(of_edit(id_of(ty)))
        .taking_any(&patches)
        .at(paths, path, "patch");
    let mut gone = of_edit(id_of(ty));
    gone.push(parameter(if ty.is_cluster() { "Purge" } else { "Cascade" }));
    let summary = if ty.is_cluster() {
        "Decommission a cluster: it is told that it has nothing.".to_owned()
    } else {
        format!("Delete a {} that nobody refers to.", ty.kind)
    };
    Operation::new(tag, &format!("delete{one}"), &summary, &or_plan(&document)).with(gone).at(paths, path, "delete");
}

fn describe_past(ty: &ResourceType, one: &str, path: &str, paths: &mut Value) {
    let mut pages = id_of(ty);
    pages.extend([parameter("Before"), parameter("Limit")]);
    let summary = "Every change of the document, newest first.";
    Operation::new("changes", &format!("history{one}"), summary, &list_of("HistoryEntry")).with(pages).limited().at(
        paths,
        &format!("{path}/history"),
        "get",
    );
    let target = json!({
        "type": "object", "required": ["revision"], "additionalProperties": false,
        "properties": {"revision": {"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER}}
    });
    let summary = "Make the document say again what it said at a revision.";
    Operation::new("changes", &format!("revert{one}"), summary, &or_plan(&reference(one)))
        .with(of_edit(id_of(ty)))
        .taking(&target)
        .at(paths, &format!("{path}/revert"), "post");
}

/// A document whose id the path says.
fn replacement(ty: &ResourceType) -> Value {
    let mut schema = closed(&ty.schema);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "id");
        if required.is_empty()
            && let Value::Object(schema) = &mut schema
        {
            schema.shift_remove("required");
        }
    }
    schema
}

/// A parameter for everything by which documents of a type can be filtered.
fn filter_parameters(ty: &ResourceType, mut first: Vec<Value>) -> Vec<Value> {
    for name in filters(ty) {
        let text = if is_list_of_references(ty, name) {
            format!("Only clusters that have this among their {name}.")
        } else {
            format!("Only documents whose {name} is this.")
        };
        first.push(json!({"name": name, "in": "query", "schema": {"type": "string"}, "description": text}));
    }
    first.push(parameter("Label"));
    first.extend(ty.is_cluster().then(|| parameter("Decommissioned")));
    first
}

fn describe_cluster(registry: &Registry, paths: &mut Value) {
    let (cluster, tag) = (or_plan(&reference("Cluster")), "clusters");
    let summary = "Put a decommissioned cluster in force again, as it was.";
    Operation::new(tag, "restoreCluster", summary, &cluster).with(of_change(vec![parameter("ClusterId")])).at(
        paths,
        "/clusters/{id}/restore",
        "post",
    );

    let summary = "Release a former DNS name: the cluster no longer answers to it, and another cluster may take it.";
    let name = json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"},
        "description": "A name of the cluster's former_dns."});
    Operation::new(tag, "releaseDns", summary, &cluster).with(of_edit(vec![parameter("ClusterId"), name])).at(
        paths,
        "/clusters/{id}/former_dns/{name}",
        "delete",
    );

    let path = "/clusters/{id}/patches/{component}";
    let component = || of_edit(vec![parameter("ClusterId"), parameter("Component")]);
    let summary = "Make these the patches of a component on a cluster.";
    Operation::new(tag, "setPatches", summary, &cluster).with(component()).taking(&object()).at(paths, path, "put");
    let summary = "Change the patches of a component on a cluster; null takes one away.";
    Operation::new(tag, "mergePatches", summary, &cluster).with(component()).taking(&object()).at(paths, path, "patch");
    let summary = "Take all patches of a component on a cluster away.";
    Operation::new(tag, "removePatches", summary, &cluster).with(component()).at(paths, path, "delete");

    for ty in registry.definitions() {
        let (one, many) = (camel(ty.kind.as_str()), camel(&ty.plural));
        let summary = format!("What a cluster is told of type {} or, at a revision, was told then.", ty.kind);
        Operation::new(tag, &format!("inputs{many}"), &summary, &polls::inputs(ty))
            .with(vec![parameter("ClusterId"), parameter("Empty"), parameter("Revision")])
            .or_incomplete()
            .at(paths, &format!("/clusters/{{id}}/inputs/{}", ty.path), "get");
        let path = format!("/clusters/{{id}}/{}/{{ref_id}}", ty.list);
        let place = || of_edit(vec![parameter("ClusterId"), parameter("RefId")]);
        let summary = format!("Give a cluster a {}, or say what it overrides.", ty.kind);
        Operation::new(tag, &format!("assign{one}"), &summary, &cluster)
            .with(place())
            .taking(&object())
            .at(paths, &path, "put");
        let summary = format!("Take a {} away from a cluster.", ty.kind);
        Operation::new(tag, &format!("unassign{one}"), &summary, &cluster).with(place()).at(paths, &path, "delete");
    }
}

fn describe_changes(paths: &mut Value) {
    let (tag, written) = ("changes", or_plan(&reference("Written")));
    let summary = "The resource types that this server knows.";
    Operation::new("documents", "listTypes", summary, &list_of("ResourceType")).at(paths, "/types", "get");
    Operation::new("documents", "batch", "Many writes, one change, all or none.", &written)
        .with(of_change(vec![]))
        .taking(&reference("Batch"))
        .at(paths, "/batch", "post");
    let summary = "Say that the log is to be followed, though it does not continue what is served.";
    Operation::new("operators", "acceptStore", summary, &or_plan(&reference("Accepted")))
        .with(
            ["ExpectedDigest", "Served", "DryRun", "ExpectedRevision", "ExpectedEpoch", "AllowRemovals", "Reason"]
                .map(parameter)
                .to_vec(),
        )
        .at(paths, "/store/accept", "post");
    let summary = "Serve the resource types as this server's files say; expected_revision is needed.";
    Operation::new("operators", "acceptTypes", summary, &written)
        .with(
            ["ExpectedChanges", "PlannedRevision", "ExpectedEpoch", "DryRun", "AllowRemovals", "Reason"]
                .map(parameter)
                .to_vec(),
        )
        .at(paths, "/types/accept", "post");
    let summary = "The audit trail, newest first; the next page is in the Link header.";
    Operation::new(tag, "listChanges", summary, &list_of("Change"))
        .with(["Kind", "ChangedId", "Actor", "Since", "Until", "Before", "Limit"].map(parameter).to_vec())
        .at(paths, "/changes", "get");
    let summary = "Follow the log, as server-sent events; Last-Event-ID is honoured.";
    Operation::answering(tag, "followChanges", summary, "200", "text/event-stream", &json!({"type": "string"}))
        .with(vec![parameter("After")])
        .at(paths, "/changes/stream", "get");
    let summary = "One change, with every document before and after it.";
    Operation::new(tag, "getChange", summary, &reference("ChangeWithDocuments"))
        .with(vec![parameter("PathRevision")])
        .at(paths, "/changes/{revision}", "get");
    let summary = "Undo a change by a new one; refused if it was changed since.";
    Operation::new(tag, "revertChange", summary, &written).with(of_change(vec![parameter("PathRevision")])).at(
        paths,
        "/changes/{revision}/revert",
        "post",
    );
}
