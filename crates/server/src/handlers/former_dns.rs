//! `DELETE /clusters/{id}/former_dns/{name}`: a cluster no longer answers to a name that it had before. A poll
//! under it is answered 404, which deletes nothing, and another cluster may take the name.

use axum::{extract::State, response::Response};

use super::{Mutation, Segments, changed, cluster_at};
use crate::{App, failure::Failure};

pub(crate) async fn release(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, name)): Segments<(String, String)>,
) -> Result<Response, Failure> {
    let (clusters, cluster) = cluster_at(&app, &cluster)?;
    changed(mutation.of(clusters, &cluster, |draft| draft.release_dns(&cluster, &name)).await?, clusters, &cluster)
}
