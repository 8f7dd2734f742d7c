//! `GET /{type}`: the documents of a type that the filters take, a page of them if asked.

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use super::{Segments, answers::not_modified, past, selection::Selection, type_at};
use crate::{
    App,
    access::ReadAccess,
    failure::Failure,
    precondition::{Precondition, etag},
    query::Params,
};

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

pub(crate) async fn list(
    _: ReadAccess,
    State(app): State<App>,
    Segments(plural): Segments<String>,
    precondition: Precondition,
    mut params: Params,
) -> Result<Response, Failure> {
    let ty = type_at(&app, &plural)?;
    let (limit, offset) = (params.count("limit")?, params.count("offset")?);
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let revision = past::revision(&mut params)?;
    let selection = Selection::take(&mut params, ty, &[])?;
    let fleet = past::picture(&app, revision).await?;
    // Whatever was written since the picture of that revision may be in the list.
    if precondition.is_known(fleet.revision()) {
        return Ok(not_modified(fleet.revision()));
    }
    let found: Vec<_> = selection.of(&fleet, ty).collect();
    let page: Vec<_> = found
        .iter()
        .skip(offset.map_or(0, size))
        .take(limit.map_or(usize::MAX, size))
        .map(|it| it.body.text())
        .collect();
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ETAG, etag(fleet.revision())),
        (TOTAL, HeaderValue::from(found.len())),
    ];
    Ok((headers, format!("[{}]", page.join(","))).into_response())
}
