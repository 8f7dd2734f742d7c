//! What is seen of every request: its id, its time, its failure and from whom it came, and that huge bodies are not even begun.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use jiff::Timestamp;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use model::Excerpt;

use crate::{
    App,
    body::BodyLimits,
    failure::Failure,
    handlers::chunks,
    listener::PeerAddress,
    metrics::{POLLS, UNMATCHED},
    router::OPENAPI,
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, for whoever handles it.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// Measures a request and logs its failure, once.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let start = app.clock.uptime();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let client =
        request.extensions().get::<PeerAddress>().map(|PeerAddress(address)| tracing::field::display(*address));
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let id = app.request_ids.of(given, app.clock.now(), &mut [0; 36]).to_owned();
    request.extensions_mut().insert(RequestId(id.clone()));
    // What is logged about the request anywhere says whose it is.
    let span = tracing::info_span!("request", client.address = client, request.id = id);
    let mut response = match content_length(&request).map_or(Ok(()), BodyLimits::check_length) {
        Ok(()) => next.run(request).instrument(span).await,
        Err(too_large) => too_large.into_response(),
    };

    let took = app.clock.uptime().saturating_sub(start);
    let route = path.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    app.metrics.answered(route, &method, response.status(), took);
    if let Some(failure) = response.extensions_mut().remove::<Failure>() {
        let (status, code) = (failure.status().as_u16(), failure.code());
        let (method, path) = (Excerpt(&method), Excerpt(uri.path()));
        if uri.path() == "/ready" {
            // That is what a probe asks for, many times a second while a large fleet is loaded.
            tracing::debug!(http.status = status, client.address = client, code, "not ready: {}", failure.cause());
        } else if failure.status().is_server_error() {
            tracing::warn!(http.method = %method, http.path = %path, http.status = status, client.address = client, request.id = id, code, "a request failed: {}", failure.cause());
        } else {
            tracing::info!(http.method = %method, http.path = %path, http.status = status, client.address = client, request.id = id, code, "a request was refused: {}", failure.cause());
        }
    }
    // An id is printable, so it can stand in a header.
    response.headers_mut().extend(HeaderValue::try_from(id).map(|id| (REQUEST_ID, id)));
    response
}

/// Has what is only read computed where no change waits for it. Probes are answered here: they compute nothing.
pub(crate) async fn read_elsewhere(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || ["/health", "/ready"].contains(&request.uri().path()) {
        return next.run(request).await;
    }
    // A set ends its tasks with itself: nobody reads for a client that has gone.
    let mut reading = JoinSet::new();
    let shared = app.clone();
    let is_bounded = request.extensions().get::<MatchedPath>().is_none_or(|path| !UNBOUNDED.contains(&path.as_str()));
    let read = async move {
        let response = next.run(request).await;
        if is_bounded { chunks::bounded(&shared.limits, response).await } else { response }
    };
    reading.spawn_on(read.in_current_span(), &app.readers);
    match reading.join_next().await {
        Some(Ok(response)) => response,
        Some(Err(error)) => Failure::internal(error).into_response(),
        None => Failure::internal("what was read is gone").into_response(),
    }
}

/// Where no answer waits for a slot, however large it is: polls are never refused, and the description of the API is in memory
/// once for all who ask for it.
const UNBOUNDED: [&str; 2] = [POLLS, OPENAPI];

/// Gives requests their ids.
pub(crate) struct RequestIds {
    /// Of this process, drawn once: to ask the system for chance would be the slowest part of a poll.
    seed: [u8; 4],
    next: AtomicU64,
}

impl RequestIds {
    #[expect(clippy::disallowed_methods, reason = "request ids are drawn here and nowhere else")]
    pub(crate) fn new() -> Self {
        let [.., a, b, c, d] = uuid::Uuid::now_v7().into_bytes();
        Self { seed: [a, b, c, d], next: AtomicU64::new(0) }
    }

    /// The client's id for the request, where it is short and printable, or else one of our own, for which there is room.
    pub(crate) fn of<'a>(&self, given: Option<&'a str>, now: Timestamp, room: &'a mut [u8; 36]) -> &'a str {
        let good = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        match given.filter(good) {
            Some(id) => id,
            None => self.draw(now).hyphenated().encode_lower(room),
        }
    }

    /// A UUID of version 7: the time, who counts, and the count.
    fn draw(&self, now: Timestamp) -> uuid::Uuid {
        let [_, _, count @ ..] = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut rest = [0; 10];
        rest[..4].copy_from_slice(&self.seed);
        rest[4..].copy_from_slice(&count);
        let time = u64::try_from(now.as_millisecond()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(time, &rest).into_uuid()
    }
}

fn content_length(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
