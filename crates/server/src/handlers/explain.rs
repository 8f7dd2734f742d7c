//! `GET /clusters/{id}/explain/{type}/{ref_id}`: where each value of an input comes from.

use axum::{body::Bytes, extract::State, http::Response};
use fleet::EditError;
use http_body_util::Full;

use super::{Segments, cluster_at, definition_type, id_at, past, send};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn explain(
    access: ReadAccess,
    State(app): State<App>,
    Segments((id, name, ref_id)): Segments<(String, String, String)>,
    params: Params,
) -> Result<Response<Full<Bytes>>, Failure> {
    let ((clusters, id), ty, ref_id) = (cluster_at(&app, &id)?, definition_type(&app, &name)?, id_at(&ref_id)?);
    params.none_left()?;
    let fleet = access.fleet()?;
    let missing = || EditError::NotFound { kind: clusters.kind.clone(), id: id.clone() };
    let cluster = fleet.cluster(&id).ok_or_else(missing)?;
    let explained = fleet.explain(cluster, ty, &ref_id)?;
    let mut explained = explained.ok_or_else(|| Failure::no_input(cluster, ty, &ref_id))?;
    past::add_changes(&access, &mut explained).await;
    Ok(send(serde_json::to_vec(&explained).map_err(Failure::internal)?))
}
