//! `GET /clusters/{id}/inputs/{type}`: the inputs of a cluster, now or as they were at a revision.

use axum::{body::Bytes, extract::State, http::Response};
use http_body_util::Full;

use super::{EmptyAs, Segments, cluster_at, definition_type, past, send};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn cluster_inputs(
    access: ReadAccess,
    State(app): State<App>,
    Segments((id, path)): Segments<(String, String)>,
    mut params: Params,
) -> Result<Response<Full<Bytes>>, Failure> {
    let ((clusters, id), ty) = (cluster_at(&app, &id)?, definition_type(&app, &path)?);
    let EmptyAs(empty) = EmptyAs::take(&mut params)?;
    let revision = past::revision(&mut params)?;
    params.none_left()?;
    let now = access.fleet()?;
    let fleet = match past::known(&now, revision)? {
        None => now,
        Some(revision) => past::fleet_of(&access, clusters, &id, revision).await?,
    };
    let missing = || fleet::EditError::NotFound { kind: clusters.kind.clone(), id: id.clone() };
    let cluster = fleet.cluster(&id).ok_or_else(missing)?;
    Ok(send(fleet.inputs(cluster, ty, empty)?))
}
