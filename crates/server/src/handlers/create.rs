//! `POST /{type}`: a new document.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::Response,
};
use model::Map;

use super::{Mutation, Segments, described, type_at};
use crate::{App, body::Json, failure::Failure};

pub(crate) async fn create(
    mut mutation: Mutation,
    State(app): State<App>,
    Segments(plural): Segments<String>,
    Json(fields, _permit): Json<Map>,
) -> Result<Response, Failure> {
    let ty = type_at(&app, &plural)?;
    let precondition = mutation.precondition();
    let outcome = mutation.make(|draft| {
        let id = draft.create(ty, fields.clone())?;
        precondition.check(draft.fleet().document(ty, &id), draft.fleet().point().epoch)?;
        Ok(id)
    });
    outcome.await?.answer(|done| {
        let id = &done.value;
        let document = done.fleet.document(ty, id).ok_or_else(Failure::not_found)?;
        let location = HeaderValue::try_from(format!("/{plural}/{id}")).map_err(Failure::internal)?;
        let mut response = described(StatusCode::CREATED, document, done.fleet.point().epoch);
        response.headers_mut().insert(LOCATION, location);
        Ok(response)
    })
}
