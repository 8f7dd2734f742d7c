//! `POST /clusters/{id}/restore`: a decommissioned cluster is in force again, as it was.

use axum::{extract::State, response::Response};

use super::{Mutation, Segments, changed, cluster_at};
use crate::{App, failure::Failure};

pub(crate) async fn restore(
    mutation: Mutation,
    State(app): State<App>,
    Segments(cluster): Segments<String>,
) -> Result<Response, Failure> {
    let (clusters, cluster) = cluster_at(&app, &cluster)?;
    changed(mutation.make(|draft| Ok(draft.restore(&cluster)?)).await?, clusters, &cluster)
}
