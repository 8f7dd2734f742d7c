//! `PUT|PATCH|DELETE /clusters/{id}/patches/{component}`: the patches of one component on one cluster.

use axum::{extract::State, response::Response};
use model::Map;

use super::{Mutation, Segments, changed, cluster_at, id_at};
use crate::{App, body::Json, failure::Failure};

pub(crate) async fn set(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, component)): Segments<(String, String)>,
    Json(patches, _permit): Json<Map>,
) -> Result<Response, Failure> {
    let ((clusters, cluster), component) = (cluster_at(&app, &cluster)?, id_at(&component)?);
    let edited = mutation.of(clusters, &cluster, |draft| draft.set_patches(&cluster, &component, patches.clone()));
    changed(edited.await?, clusters, &cluster)
}

pub(crate) async fn merge(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, component)): Segments<(String, String)>,
    Json(patch, _permit): Json<Map>,
) -> Result<Response, Failure> {
    let ((clusters, cluster), component) = (cluster_at(&app, &cluster)?, id_at(&component)?);
    let edited = mutation.of(clusters, &cluster, |draft| draft.merge_patches(&cluster, &component, patch.clone()));
    changed(edited.await?, clusters, &cluster)
}

pub(crate) async fn remove(
    mutation: Mutation,
    State(app): State<App>,
    Segments((cluster, component)): Segments<(String, String)>,
) -> Result<Response, Failure> {
    let ((clusters, cluster), component) = (cluster_at(&app, &cluster)?, id_at(&component)?);
    let edited = mutation.of(clusters, &cluster, |draft| draft.remove_patches(&cluster, &component));
    changed(edited.await?, clusters, &cluster)
}
