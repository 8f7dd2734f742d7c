//! What is observed of every request: its id, its duration, its failure and the address of its client.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use axum::http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use jiff::Timestamp;
use model::Excerpt;
use tracing::Span;

use crate::{App, failure::Failure};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, for its handler.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// A request that is being answered.
pub(crate) struct Observation {
    start: Duration,
    id: String,
    client: SocketAddr,
    method: Method,
    uri: Uri,
}

impl Observation {
    /// A request has arrived. The address is that of the connection; a proxy is its own client, since anybody can write what
    /// `X-Forwarded-For` contains.
    pub(crate) fn begin<B>(app: &App, request: &Request<B>, client: SocketAddr) -> Self {
        let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        Self {
            start: app.clock.uptime(),
            id: app.request_ids.choose(given, app.clock.now()),
            client,
            method: request.method().clone(),
            uri: request.uri().clone(),
        }
    }

    pub(crate) fn request_id(&self) -> RequestId {
        RequestId(self.id.clone())
    }

    /// What is logged within it names the request and the client.
    pub(crate) fn span(&self) -> Span {
        tracing::info_span!("request", client.address = %self.client, request.id = self.id)
    }

    /// The request is answered: measures it, logs its failure once, and puts its id into the response.
    pub(crate) fn finish<B>(self, app: &App, route: &str, mut response: Response<B>) -> Response<B> {
        let Self { start, id, client, method, uri } = self;
        let took = app.clock.uptime().saturating_sub(start);
        app.metrics.answered(route, &method, response.status(), took);
        if let Some(failure) = response.extensions_mut().remove::<Failure>() {
            let (status, code) = (failure.status().as_u16(), failure.code());
            let (method, path) = (Excerpt(&method), Excerpt(uri.path()));
            if uri.path() == "/ready" {
                // A probe expects this answer many times a second while a large fleet is loaded.
                tracing::debug!(http.status = status, client.address = %client, code, "not ready: {}", failure.cause());
            } else if failure.status().is_server_error() {
                tracing::warn!(http.method = %method, http.path = %path, http.status = status, client.address = %client, request.id = id, code, "a request failed: {}", failure.cause());
            } else {
                tracing::info!(http.method = %method, http.path = %path, http.status = status, client.address = %client, request.id = id, code, "a request was refused: {}", failure.cause());
            }
        }
        // An id is printable, so it can stand in a header.
        response.headers_mut().extend(HeaderValue::try_from(id).map(|id| (REQUEST_ID, id)));
        response
    }
}

/// Chooses the ids of requests.
pub(crate) struct RequestIds {
    /// Drawn once for this process: a system call for random bytes would be the slowest part of a poll.
    seed: [u8; 4],
    next: AtomicU64,
}

impl RequestIds {
    #[expect(clippy::disallowed_methods, reason = "request ids are drawn here and nowhere else")]
    pub(crate) fn new() -> Self {
        let [.., a, b, c, d] = uuid::Uuid::now_v7().into_bytes();
        Self { seed: [a, b, c, d], next: AtomicU64::new(0) }
    }

    /// The client's id for the request if it is short and printable, or else a new one.
    fn choose(&self, given: Option<&str>, now: Timestamp) -> String {
        let is_valid = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        given.filter(is_valid).map_or_else(|| self.draw(now).to_string(), ToOwned::to_owned)
    }

    /// A UUID of version 7: the time, the process, and a counter.
    fn draw(&self, now: Timestamp) -> uuid::Uuid {
        let [_, _, count @ ..] = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut rest = [0; 10];
        rest[..4].copy_from_slice(&self.seed);
        rest[4..].copy_from_slice(&count);
        let time = u64::try_from(now.as_millisecond()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(time, &rest).into_uuid()
    }
}
