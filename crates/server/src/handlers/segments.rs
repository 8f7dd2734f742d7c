//! The parts of a path.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use model::{Excerpt, Id, ResourceType};
use serde::de::DeserializeOwned;

use crate::{
    App,
    failure::{ErrorStatus, Failure},
};

/// The parameters of a path, by position. A path that cannot be read is a path at which there is nothing.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Segments<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Path(segments) = Path::from_request_parts(parts, app).await.map_err(|_| Failure::not_found())?;
        Ok(Self(segments))
    }
}

/// The type whose documents are at a path: `/{plural}`.
pub(crate) fn type_at<'a>(app: &'a App, plural: &str) -> Result<&'a ResourceType, Failure> {
    app.registry.types().find(|ty| ty.plural == plural).ok_or_else(Failure::not_found)
}

/// The id in a path. What is no id is the id of nothing.
pub(crate) fn id_at(text: &str) -> Result<Id, Failure> {
    let nothing = |error| {
        let detail = format!("there is no \"{}\": {error}", Excerpt(text));
        Failure::new(ErrorStatus::NOT_FOUND, "not-found", detail)
    };
    Id::parse(text).map_err(nothing)
}

/// The document at a path: its type and its id.
pub(crate) fn document_at<'a>(
    app: &'a App,
    (plural, id): &(String, String),
) -> Result<(&'a ResourceType, Id), Failure> {
    Ok((type_at(app, plural)?, id_at(id)?))
}

/// The cluster type and the id of the cluster at a path.
pub(crate) fn cluster_at<'a>(app: &'a App, id: &str) -> Result<(&'a ResourceType, Id), Failure> {
    let clusters = app.registry.by_kind(ResourceType::CLUSTER).ok_or_else(Failure::not_found)?;
    Ok((clusters, id_at(id)?))
}

/// The type that a cluster refers to, by its list or any of its names.
pub(crate) fn definition_type<'a>(app: &'a App, name: &str) -> Result<&'a ResourceType, Failure> {
    let by_list = || app.registry.definitions().find(|ty| ty.list == name);
    by_list().or_else(|| app.registry.by_name(name).filter(|ty| !ty.is_cluster())).ok_or_else(Failure::not_found)
}
