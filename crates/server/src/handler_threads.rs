//! On which threads a handler runs, so that polls, changes and other reads never wait for one another.
//!
//! Every request that reaches the router is handled by a task of its own: reads by the reader runtime, whose threads have a low
//! priority, changes and probes by the API runtime. If a handler panics, only its task ends, and the client gets a 500.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::{App, body::BodyLimits, failure::Failure, handlers::chunks, metrics::POLLS, router::OPENAPI};

/// Runs the handler of a request on the threads for its kind of requests. The response gets the matched path, which metrics need.
pub(crate) async fn run_handler(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    // A body that is declared to be larger than any may be is refused before it is read.
    let mut response = match content_length(&request).map_or(Ok(()), BodyLimits::check_length) {
        Ok(()) => spawn_handler(app, path.as_ref(), request, next).await,
        Err(too_large) => too_large.into_response(),
    };
    if let Some(path) = path {
        response.extensions_mut().insert(path);
    }
    response
}

async fn spawn_handler(app: App, path: Option<&MatchedPath>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_probe = ["/health", "/ready"].contains(&request.uri().path());
    let is_bounded = path.is_none_or(|path| !UNBOUNDED.contains(&path.as_str()));
    let runtime = if is_read && !is_probe { app.runtimes.readers.clone() } else { app.runtimes.api.clone() };
    let handle = async move {
        let response = next.run(request).await;
        if is_read && is_bounded { chunks::bounded(&app.limits, response).await } else { response }
    };
    // A set aborts its tasks when it is dropped: a client that has disconnected is not answered.
    let mut task = JoinSet::new();
    task.spawn_on(handle.in_current_span(), &runtime);
    match task.join_next().await {
        Some(Ok(response)) => response,
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => Failure::panicked(&*panic).into_response(),
            Err(error) => Failure::internal(error).into_response(),
        },
        None => Failure::internal("the task of a handler has no result").into_response(),
    }
}

/// Answers that never wait for a slot, however large they are: polls are never refused for that, and the API's description is
/// in memory once for all who ask for it.
const UNBOUNDED: [&str; 2] = [POLLS, OPENAPI];

fn content_length(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
