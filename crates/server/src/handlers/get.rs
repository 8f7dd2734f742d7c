//! `GET /{type}/{id}`: one document, now or at a revision.

use axum::{extract::State, http::StatusCode, response::Response};

use super::{Segments, answers::not_modified, described, document_at, past};
use crate::{App, access::ReadAccess, failure::Failure, precondition::Precondition, query::Params};

pub(crate) async fn get(
    access: ReadAccess,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    precondition: Precondition,
    mut params: Params,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let revision = past::revision(&mut params)?;
    params.none_left()?;
    // Before the document: a tag of an epoch that is over matches nothing.
    let epoch = access.fleet()?.point().epoch;
    let document = past::document(&access, ty, &id, revision).await?;
    if precondition.is_known(document.revision, epoch) {
        return Ok(not_modified(document.revision, epoch));
    }
    Ok(described(StatusCode::OK, &document, epoch))
}
