//! `GET /openapi.yaml`: the description of this API. For everyone.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use crate::{App, failure::Failure};

pub(crate) async fn openapi(State(app): State<App>) -> Result<Response, Failure> {
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"))], app.openapi().await?).into_response())
}
