//! `GET /metrics`: what Prometheus scrapes. For everyone.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use crate::{App, failure::Failure};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    let fleet = app.fleet.snapshot();
    let age = app.status.age(app.clock.uptime());
    let text =
        app.metrics.expose(fleet.as_deref(), app.status.store(), age, app.clock.now()).map_err(Failure::internal)?;
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
