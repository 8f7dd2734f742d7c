//! `GET /api/v2/flux/clusters/{cluster_dns}/{type}`: what a cluster's Flux Operator polls.

use axum::{extract::State, http::StatusCode, response::Response};
use model::ClusterDns;

use super::{EmptyAs, Segments, send};
use crate::{App, access::ReadAccess, failure::Failure};

pub(crate) async fn flux_inputs(
    _: ReadAccess,
    State(app): State<App>,
    Segments((dns, path)): Segments<(String, String)>,
    EmptyAs(empty): EmptyAs,
) -> Result<Response, Failure> {
    let ty = app.registry.by_path(&path).ok_or_else(|| {
        Failure::new(StatusCode::NOT_FOUND, "unknown-type", format!("no resource type is served as \"{path}\""))
    })?;
    let fleet = app.snapshot()?;
    let cluster = fleet.cluster_at(&ClusterDns::normalise(&dns))?;
    app.metrics.polled(cluster, ty, app.clock.now());
    Ok(send(fleet.inputs(cluster, ty, empty)?))
}
