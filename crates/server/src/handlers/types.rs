//! `GET /types`: the resource types that this server knows, for clients that know none of them.

use api::TypeDescription;
use axum::{Json, extract::State};
use model::ResourceType;

use super::filters;
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn types(
    _: ReadAccess,
    State(app): State<App>,
    params: Params,
) -> Result<Json<Vec<TypeDescription>>, Failure> {
    params.none_left()?;
    Ok(Json(app.registry.types().map(described).collect()))
}

fn described(ty: &ResourceType) -> TypeDescription {
    TypeDescription {
        kind: ty.kind.to_string(),
        plural: ty.plural.clone(),
        path: ty.path.clone(),
        description: ty.description.clone(),
        patchable: ty.patchable,
        nest: ty.nests.iter().map(|nest| (nest.name.clone(), nest.fields.clone())).collect(),
        filters: filters(ty).map(str::to_owned).collect(),
        schema: ty.schema.clone(),
        // Clusters refer to every type but their own.
        list: (!ty.is_cluster()).then(|| ty.list.clone()),
        template: ty.template.clone(),
    }
}
