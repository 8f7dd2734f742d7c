//! `PUT /{type}/{id}`: replaces a document. Without `If-Match`, the last writer wins.

use axum::{extract::State, response::Response};
use model::Map;

use super::{Mutation, Segments, changed, document_at};
use crate::{App, body::Json, failure::Failure};

pub(crate) async fn replace(
    mutation: Mutation,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    Json(fields, _permit): Json<Map>,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    changed(mutation.of(ty, &id, |draft| draft.replace(ty, &id, fields.clone())).await?, ty, &id)
}
