//! `GET /api/v2/flux/clusters`: the live clusters, for whoever provisions them.

use axum::{body::Bytes, extract::State, http::Response};
use http_body_util::Full;
use model::ResourceType;

use super::{EmptyAs, send};
use crate::{App, access::ReadAccess, failure::Failure};

pub(crate) async fn flux_clusters(
    _: ReadAccess,
    State(app): State<App>,
    EmptyAs(empty): EmptyAs,
) -> Result<Response<Full<Bytes>>, Failure> {
    let fleet = app.snapshot()?;
    let ty = app.registry.by_kind(ResourceType::CLUSTER).ok_or_else(Failure::not_found)?;
    Ok(send(fleet.cluster_inputs(ty, empty)?))
}
