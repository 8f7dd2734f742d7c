//! How answers are written.

use std::time::Duration;

use api::{WriteSummary, WrittenChange};
use axum::{
    body::Bytes,
    extract::FromRequestParts,
    http::{self, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use fleet::Empty;
use http_body_util::Full;
use model::{Document, Epoch, Id, ResourceType, Revision, Write};
use serde::Serialize;
use tokio::task::block_in_place;

use super::chunks::Chunks;
use crate::{
    App,
    failure::Failure,
    precondition::etag,
    query::Params,
    request_limits::Permit,
    writing::{Done, Outcome},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The revision of the change or, where there was nothing to do, of the served snapshot.
pub(super) const REVISION: HeaderName = HeaderName::from_static("x-revision");

/// How a poll wants "no inputs" to be answered.
pub(crate) struct EmptyAs(pub(crate) Empty);

impl FromRequestParts<App> for EmptyAs {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let mut params = Params::from_request_parts(parts, app).await?;
        let empty = Self::take(&mut params)?;
        // A misspelt parameter must not silently become the default, which can mean "delete".
        params.none_left()?;
        Ok(empty)
    }
}

impl EmptyAs {
    pub(crate) fn take(params: &mut Params) -> Result<Self, Failure> {
        Ok(Self(params.word("empty", &["explicit"])?.map_or(Empty::Bare, |_| Empty::Explicit)))
    }
}

/// Sends a checked answer. No cache may keep it: a list that was true once is a delete command later.
pub(crate) fn send(answer: impl AsRef<[u8]> + Send + 'static) -> http::Response<Full<Bytes>> {
    const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
    let mut response = http::Response::new(Full::new(Bytes::from_owner(answer)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// Sends a checked answer, compressed.
pub(crate) fn send_zipped(answer: impl AsRef<[u8]> + Send + 'static) -> http::Response<Full<Bytes>> {
    const GZIP: HeaderValue = HeaderValue::from_static("gzip");
    let mut response = send(answer);
    response.headers_mut().insert(header::CONTENT_ENCODING, GZIP);
    response
}

/// Tells the client that it has the present version already.
pub(crate) fn not_modified(revision: Revision, epoch: Epoch) -> Response {
    (StatusCode::NOT_MODIFIED, [(header::ETAG, etag(revision, epoch))]).into_response()
}

/// Sends a document.
pub(crate) fn described(status: StatusCode, document: &Document, epoch: Epoch) -> Response {
    let headers = [(header::CONTENT_TYPE, JSON), (header::ETAG, etag(document.revision, epoch))];
    (status, headers, document.body.text().into_owned()).into_response()
}

/// The time for a client to receive a plan: other requests wait for theirs.
const PLAN_PATIENCE: Duration = Duration::from_mins(1);

/// Sends a plan, or an answer that contains one. A plan of the whole fleet is megabytes of text.
pub(super) fn planned(plan: impl Serialize, permit: Option<Permit>) -> Result<Response, Failure> {
    let chunks = block_in_place(|| Chunks::of_json(&plan)).map_err(Failure::internal)?;
    drop(plan);
    Ok(([(header::CONTENT_TYPE, JSON)], chunks.body_within(PLAN_PATIENCE, permit)).into_response())
}

impl<T> Outcome<T> {
    /// Sends the plan, or the answer that is built from the change.
    pub(crate) fn answer(self, done: impl FnOnce(Done<T>) -> Result<Response, Failure>) -> Result<Response, Failure> {
        match self {
            Self::Planned(plan, permit) => planned(plan, permit),
            Self::Done(change) => {
                let revision = HeaderValue::from(change.revision.0);
                let mut response = done(change)?;
                response.headers_mut().insert(REVISION, revision);
                Ok(response)
            }
        }
    }
}

/// Sends the outcome of a change to one document: the document as it is now.
pub(crate) fn changed<T>(outcome: Outcome<T>, ty: &ResourceType, id: &Id) -> Result<Response, Failure> {
    outcome.answer(|done| {
        let document = done.fleet.document(ty, id).ok_or_else(Failure::not_found)?;
        Ok(described(StatusCode::OK, document, done.fleet.point().epoch))
    })
}

/// Sends the outcome of a change to many documents: what was written, and as which revision.
pub(crate) fn wrote<T>(outcome: Outcome<T>) -> Result<Response, Failure> {
    outcome.answer(|done| {
        let documents = done.writes.iter().map(summary).collect();
        Ok(axum::Json(WrittenChange { revision: done.revision, documents }).into_response())
    })
}

/// A write, without the document.
pub(super) fn summary(Write { kind, id, op }: &Write) -> WriteSummary {
    WriteSummary { kind: kind.clone(), id: id.clone(), op: op.name().to_owned() }
}
