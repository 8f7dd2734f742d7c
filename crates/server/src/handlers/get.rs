//! `GET /{type}/{id}`: one document, now or at a revision.

use axum::{
    extract::State,
    http::{StatusCode, header::ETAG},
    response::{IntoResponse as _, Response},
};

use super::{Segments, described, document_at, past};
use crate::{
    App,
    access::ReadAccess,
    failure::Failure,
    precondition::{Precondition, etag},
    query::Params,
};

pub(crate) async fn get(
    _: ReadAccess,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    precondition: Precondition,
    mut params: Params,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let revision = past::revision(&mut params)?;
    params.none_left()?;
    let document = past::document(&app, ty, &id, revision).await?;
    if precondition.is_known(&document) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag(document.revision))]).into_response());
    }
    Ok(described(StatusCode::OK, &document))
}
