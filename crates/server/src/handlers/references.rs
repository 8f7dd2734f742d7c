//! `PUT|DELETE /clusters/{id}/{type}/{ref_id}`: adds a reference to a cluster, replaces its overrides, or removes it, without
//! rewriting the list.

use axum::{extract::State, response::Response};

use super::{Mutation, Segments, changed, cluster_at, definition_type, id_at};
use crate::{App, body::Fields, failure::Failure};

pub(crate) async fn assign(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, name, id)): Segments<(String, String, String)>,
    Fields(reference, _permit): Fields,
) -> Result<Response, Failure> {
    let (clusters, cluster) = cluster_at(&app, &cluster)?;
    let (ty, id) = (definition_type(&app, &name)?, id_at(&id)?);
    let edited = mutation.of(clusters, &cluster, |draft| draft.assign(&cluster, ty, &id, reference.clone()));
    changed(edited.await?, clusters, &cluster)
}

pub(crate) async fn unassign(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, name, id)): Segments<(String, String, String)>,
) -> Result<Response, Failure> {
    let (clusters, cluster) = cluster_at(&app, &cluster)?;
    let (ty, id) = (definition_type(&app, &name)?, id_at(&id)?);
    changed(mutation.of(clusters, &cluster, |draft| draft.unassign(&cluster, ty, &id)).await?, clusters, &cluster)
}
