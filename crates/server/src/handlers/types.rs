//! `GET /types`: the resource types that this server knows, for clients that know none by heart.

use axum::{Json, extract::State};
use model::{ResourceType, Value};
use serde_json::json;

use super::filters;
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn types(_: ReadAccess, State(app): State<App>, params: Params) -> Result<Json<Value>, Failure> {
    params.none_left()?;
    Ok(Json(app.registry.types().map(told).collect()))
}

fn told(ty: &ResourceType) -> Value {
    let nest: model::Map = ty.nests.iter().map(|nest| (nest.name.clone(), json!(nest.fields))).collect();
    let mut told = json!({
        "kind": ty.kind,
        "plural": ty.plural,
        "path": ty.path,
        "description": ty.description,
        "patchable": ty.patchable,
        "nest": nest,
        "filters": filters(ty).collect::<Vec<_>>(),
        "schema": ty.schema,
    });
    // Clusters refer to every type but their own.
    if !ty.is_cluster() {
        told["list"] = json!(ty.list);
    }
    if let Some(template) = &ty.template {
        told["template"] = json!(template);
    }
    told
}
