//! What operators and auditors call, in mode crud.

use api::{
    Batch, ChangeDetails, ChangeSummary, Explanation, HistoryEntry, JsonPatch, Plan, RevertTarget, Schemas,
    StoreAcceptance, TypeDescription, WrittenChange,
};
use model::{Map, Registry, ResourceType, Value};
use serde_json::json;

use crate::handlers::{filters, is_list_of_references};

use super::{JSON, Operation, camel, closed, parameter, polls, reference};

/// Describes the operations, and answers the schemas of the documents.
pub(super) fn describe(registry: &Registry, paths: &mut Value, schemas: &mut Schemas) -> Map {
    for ty in registry.types() {
        describe_documents(ty, paths, schemas);
    }
    describe_cluster(registry, paths, schemas);
    describe_changes(paths, schemas);
    registry.types().map(|ty| (camel(ty.kind.as_str()), closed(&ty.schema))).collect()
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

fn or_plan(schema: &Value, schemas: &mut Schemas) -> Value {
    json!({"anyOf": [schema, schemas.answer::<Plan>()]})
}

/// Any object: what is checked of a patch is the document after it.
fn object() -> Value {
    json!({"type": "object"})
}

fn describe_documents(ty: &ResourceType, paths: &mut Value, schemas: &mut Schemas) {
    let (one, many, tag) = (camel(ty.kind.as_str()), camel(&ty.plural), "documents");
    let document = reference(&one);
    let documents = json!({"type": "array", "items": document});
    let path = format!("/{}", ty.plural);
    let page = ["Limit", "Offset", "Revision", "IfNoneMatch"].map(parameter).to_vec();
    let page = filter_parameters(ty, page);
    Operation::new(tag, &format!("list{many}"), &format!("The documents of type {}.", ty.kind), &documents)
        .with(page)
        .or("304", json!({"description": "The client has it already."}))
        .or_incomplete()
        .at(paths, &path, "get");
    let plan = json!({"description": "What would be done.", "content": {JSON: {"schema": schemas.answer::<Plan>()}}});
    Operation::answering(tag, &format!("create{one}"), &format!("Create a {}.", ty.kind), "201", JSON, &document)
        .with(of_edit(vec![]))
        .taking(&document)
        .or("200", plan)
        .at(paths, &path, "post");
    let summary = "One strategic merge patch over every match, as one change.";
    let written = or_plan(&schemas.answer::<WrittenChange>(), schemas);
    Operation::new(tag, &format!("bulkPatch{many}"), summary, &written)
        .with(of_change(filter_parameters(ty, vec![parameter("All")])))
        .taking_any(&json!({
            "application/strategic-merge-patch+json": {"schema": object()},
            JSON: {"schema": object()}
        }))
        .or_incomplete()
        .at(paths, &path, "patch");
    describe_document(ty, &one, &format!("{path}/{{id}}"), paths, schemas);
    describe_past(ty, &one, &format!("{path}/{{id}}"), paths, schemas);
}

fn id_of(ty: &ResourceType) -> Vec<Value> {
    vec![parameter(if ty.is_cluster() { "ClusterId" } else { "Id" })]
}

fn describe_document(ty: &ResourceType, one: &str, path: &str, paths: &mut Value, schemas: &mut Schemas) {
    let (document, tag) = (reference(one), "documents");
    let changed = or_plan(&document, schemas);
    let mut read = id_of(ty);
    read.extend([parameter("Revision"), parameter("IfNoneMatch")]);
    Operation::new(tag, &format!("get{one}"), &format!("One {}, with its ETag.", ty.kind), &document)
        .with(read)
        .or("304", json!({"description": "The client has it already."}))
        .at(paths, path, "get");
    let summary = format!("Replace a {}. Without If-Match, the last writer wins.", ty.kind);
    Operation::new(tag, &format!("replace{one}"), &summary, &changed)
        .with(of_edit(id_of(ty)))
        .taking(&replacement(ty))
        .at(paths, path, "put");
    let patches = json!({
        "application/merge-patch+json": {"schema": object()},
        "application/strategic-merge-patch+json": {"schema": object()},
        "application/json-patch+json": {"schema": schemas.request::<JsonPatch>()},
        JSON: {"schema": object()}
    });
    let summary = format!("Change a {}. Concurrent patches never lose one another.", ty.kind);
    Operation::new(tag, &format!("patch{one}"), &summary, &changed)
        .with(of_edit(id_of(ty)))
        .taking_any(&patches)
        .at(paths, path, "patch");
    let mut gone = of_edit(id_of(ty));
    gone.push(parameter(if ty.is_cluster() { "Purge" } else { "Cascade" }));
    let summary = if ty.is_cluster() {
        "Decommission a cluster: its polls are answered with no inputs, and Flux deletes what it has.".to_owned()
    } else {
        format!("Delete a {} to which no cluster refers.", ty.kind)
    };
    Operation::new(tag, &format!("delete{one}"), &summary, &changed).with(gone).at(paths, path, "delete");
}

fn describe_past(ty: &ResourceType, one: &str, path: &str, paths: &mut Value, schemas: &mut Schemas) {
    let mut pages = id_of(ty);
    pages.extend([parameter("Before"), parameter("Limit")]);
    let summary = "Every change of the document, newest first.";
    Operation::new("changes", &format!("history{one}"), summary, &schemas.answer::<Vec<HistoryEntry>>())
        .with(pages)
        .limited()
        .at(paths, &format!("{path}/history"), "get");
    let (changed, target) = (or_plan(&reference(one), schemas), schemas.request::<RevertTarget>());
    let summary = "Make the document again what it was at a revision.";
    Operation::new("changes", &format!("revert{one}"), summary, &changed).with(of_edit(id_of(ty))).taking(&target).at(
        paths,
        &format!("{path}/revert"),
        "post",
    );
}

/// A document whose id is in the path.
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

fn describe_cluster(registry: &Registry, paths: &mut Value, schemas: &mut Schemas) {
    let (cluster, tag) = (or_plan(&reference("Cluster"), schemas), "clusters");
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
    let summary = "Change the patches of a component on a cluster; null removes one.";
    Operation::new(tag, "mergePatches", summary, &cluster).with(component()).taking(&object()).at(paths, path, "patch");
    let summary = "Remove all patches of a component on a cluster.";
    Operation::new(tag, "removePatches", summary, &cluster).with(component()).at(paths, path, "delete");

    for ty in registry.definitions() {
        let (one, many) = (camel(ty.kind.as_str()), camel(&ty.plural));
        let summary = format!("The inputs of type {} of a cluster, now or as they were at a revision.", ty.kind);
        Operation::new(tag, &format!("inputs{many}"), &summary, &polls::inputs(ty, schemas))
            .with(vec![parameter("ClusterId"), parameter("Empty"), parameter("Revision")])
            .or_incomplete()
            .at(paths, &format!("/clusters/{{id}}/inputs/{}", ty.path), "get");
        let summary =
            format!("Where each value of an input of type {} comes from, and the values that it hides.", ty.kind);
        Operation::new(tag, &format!("explain{one}"), &summary, &schemas.answer::<Explanation>())
            .with(vec![parameter("ClusterId"), parameter("RefId")])
            .or_incomplete()
            .at(paths, &format!("/clusters/{{id}}/explain/{}/{{ref_id}}", ty.path), "get");
        let path = format!("/clusters/{{id}}/{}/{{ref_id}}", ty.list);
        let place = || of_edit(vec![parameter("ClusterId"), parameter("RefId")]);
        let summary = format!("Add a reference to a {} to a cluster, or replace its overrides.", ty.kind);
        Operation::new(tag, &format!("assign{one}"), &summary, &cluster)
            .with(place())
            .taking(&object())
            .at(paths, &path, "put");
        let summary = format!("Remove the reference to a {} from a cluster.", ty.kind);
        Operation::new(tag, &format!("unassign{one}"), &summary, &cluster).with(place()).at(paths, &path, "delete");
    }
}

fn describe_changes(paths: &mut Value, schemas: &mut Schemas) {
    let (tag, written) = ("changes", or_plan(&schemas.answer::<WrittenChange>(), schemas));
    let accepted = or_plan(&schemas.answer::<StoreAcceptance>(), schemas);
    let summary = "The resource types that this server knows.";
    Operation::new("documents", "listTypes", summary, &schemas.answer::<Vec<TypeDescription>>())
        .at(paths, "/types", "get");
    Operation::new("documents", "batch", "Many writes, one change, all or none.", &written)
        .with(of_change(vec![]))
        .taking(&schemas.request::<Batch>())
        .at(paths, "/batch", "post");
    let summary = "Accept a change log that diverged from the served snapshot: it is followed from here.";
    Operation::new("operators", "acceptStore", summary, &accepted)
        .with(
            ["ExpectedDigest", "Served", "DryRun", "ExpectedRevision", "ExpectedEpoch", "AllowRemovals", "Reason"]
                .map(parameter)
                .to_vec(),
        )
        .at(paths, "/store/accept", "post");
    let summary = "Serve the resource types as this server's files declare them; expected_revision is needed.";
    Operation::new("operators", "acceptTypes", summary, &written)
        .with(
            ["ExpectedChanges", "PlannedRevision", "ExpectedEpoch", "DryRun", "AllowRemovals", "Reason"]
                .map(parameter)
                .to_vec(),
        )
        .at(paths, "/types/accept", "post");
    let summary = "The audit trail, newest first; the next page is in the Link header.";
    Operation::new(tag, "listChanges", summary, &schemas.answer::<Vec<ChangeSummary>>())
        .with(["Kind", "ChangedId", "Actor", "Since", "Until", "Before", "Limit"].map(parameter).to_vec())
        .at(paths, "/changes", "get");
    let summary = "Follow the change log, as server-sent events; Last-Event-ID is honoured.";
    Operation::answering(tag, "followChanges", summary, "200", "text/event-stream", &json!({"type": "string"}))
        .with(vec![parameter("After")])
        .at(paths, "/changes/stream", "get");
    let summary = "One change, with every document before and after it.";
    Operation::new(tag, "getChange", summary, &schemas.answer::<ChangeDetails>())
        .with(vec![parameter("PathRevision")])
        .at(paths, "/changes/{revision}", "get");
    let summary = "Undo a change by a new one; refused if it was changed since.";
    Operation::new(tag, "revertChange", summary, &written).with(of_change(vec![parameter("PathRevision")])).at(
        paths,
        "/changes/{revision}/revert",
        "post",
    );
}
