//! `GET /problems`: what is wrong with documents that are already there.

use axum::{
    Json,
    extract::State,
    http::HeaderName,
    response::{IntoResponse as _, Response},
};

use crate::{App, access::ReadAccess, failure::Failure};

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

pub(crate) async fn problems(_: ReadAccess, State(app): State<App>) -> Result<Response, Failure> {
    let fleet = app.snapshot()?;
    let problems: Vec<_> = fleet.problems().collect();
    Ok(([(TOTAL, problems.len().to_string())], Json(problems)).into_response())
}
