//! Every failure has one body: RFC 9457 problem details with a stable `code` and a sentence.
//!
//! A client gets a sentence, and the log gets the cause: causes are never sent.

mod error_status;
mod rejections;

use std::any::Any;

use api::ProblemDetails;
use axum::{
    http::{
        HeaderName, HeaderValue,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use fleet::{Cluster, Refusal, SnapshotError};
use model::{FieldError, Id, Kind, Point, ResourceType, excerpt::sentence, limits::COUNTED_ERRORS};

pub(crate) use error_status::ErrorStatus;
pub(crate) use rejections::protected;

/// Characters of the sentence for the client, and of the cause for the log.
const SENTENCE: usize = 2_000;

/// A request that failed. Boxed, since every handler may return one and few do.
#[derive(Clone, Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    status: ErrorStatus,
    code: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    header: Option<(HeaderName, HeaderValue)>,
    cause: Option<String>,
}

impl Failure {
    /// When to come back, in seconds.
    pub(crate) const RETRY: HeaderValue = HeaderValue::from_static("5");
    const RETRY_SOON: HeaderValue = HeaderValue::from_static("2");

    pub(crate) fn new(status: ErrorStatus, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = sentence(detail.into(), SENTENCE);
        Self(Box::new(Inner { status, code, detail, errors: Vec::new(), header: None, cause: None }))
    }

    pub(crate) fn unauthorized() -> Self {
        let detail = "a valid bearer token is needed in the Authorization header";
        Self::new(ErrorStatus::UNAUTHORIZED, "unauthorized", detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn not_found() -> Self {
        Self::new(ErrorStatus::NOT_FOUND, "not-found", "there is nothing at this path")
    }

    /// A cluster is served no input of that id.
    pub(crate) fn no_input(cluster: &Cluster, ty: &ResourceType, id: &Id) -> Self {
        let state = if cluster.is_live() { "" } else { "decommissioned " };
        let detail =
            format!("there is no {} \"{id}\" among the inputs of the {state}cluster \"{}\"", ty.kind, cluster.id());
        Self::new(ErrorStatus::NOT_FOUND, "not-found", detail)
    }

    /// There is no snapshot of the fleet yet.
    pub(crate) fn not_ready() -> Self {
        Self::new(ErrorStatus::SERVICE_UNAVAILABLE, "not-ready", "the fleet has not been loaded from the store yet")
            .with_header(RETRY_AFTER, Self::RETRY)
    }

    /// The store cannot be reached. Whether it has committed a change that was being appended is known after the next read.
    pub(crate) fn store_unavailable() -> Self {
        Self::new(ErrorStatus::SERVICE_UNAVAILABLE, "store-unavailable", "the store cannot be used at the moment")
            .with_header(RETRY_AFTER, Self::RETRY)
    }

    /// The server keeps the snapshot that it serves; a change would continue another history.
    pub(crate) fn store_diverged(head: &Point) -> Self {
        let detail = "the log does not continue what is served; an operator has to look at it (GET /store)";
        Self::new(ErrorStatus::SERVICE_UNAVAILABLE, "store-diverged", detail)
            .with_header(RETRY_AFTER, Self::RETRY)
            .because(format!("the log is at {head}"))
    }

    /// The files of this server declare types in another way than the change log records them.
    pub(crate) fn types_changed(detail: String) -> Self {
        Self::new(ErrorStatus::SERVICE_UNAVAILABLE, "types-changed", detail).with_header(RETRY_AFTER, Self::RETRY)
    }

    /// A document was saved that this server cannot read, so that its content is unknown.
    pub(crate) fn unreadable_document(kind: &Kind, id: &Id, cause: impl ToString) -> Self {
        let detail = format!("{kind}/{id} cannot be read, so there is no whole answer; replace it (PUT) or delete it");
        Self::new(ErrorStatus::INTERNAL_SERVER_ERROR, "unreadable-document", detail).because(cause)
    }

    /// As many requests of its sort are under way as are allowed. Nothing was done.
    pub(crate) fn too_many_requests(what: &str) -> Self {
        let detail = format!("there are too many {what} at the same time; nothing was done, and it can be tried again");
        Self::new(ErrorStatus::TOO_MANY_REQUESTS, "too-many-requests", detail)
            .with_header(RETRY_AFTER, Self::RETRY_SOON)
    }

    pub(crate) fn internal(cause: impl ToString) -> Self {
        let detail = "the server failed; its log says why";
        Self::new(ErrorStatus::INTERNAL_SERVER_ERROR, "internal", detail).because(cause)
    }

    /// A handler panicked. The message is for the log.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let message =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::internal(format!("a handler panicked: {}", message.unwrap_or("without a message")))
    }

    pub(crate) fn invalid_query(error: FieldError) -> Self {
        let detail = error.message.clone();
        let mut failure = Self::new(ErrorStatus::BAD_REQUEST, "invalid-query", detail);
        failure.0.errors.push(error);
        failure
    }

    /// A request body that is not what it should be.
    pub(crate) fn invalid_body(error: FieldError) -> Self {
        let mut failure = Self::new(ErrorStatus::BAD_REQUEST, "invalid-body", error.message.clone());
        failure.0.errors.push(error);
        failure
    }

    /// A change that would break rules, all of which are listed.
    pub(crate) fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [only] => only.to_string(),
            several if several.len() > COUNTED_ERRORS => format!("more than {COUNTED_ERRORS} rules would be broken"),
            several => format!("{} rules would be broken", several.len()),
        };
        Self::unprocessable(&detail, errors)
    }

    pub(crate) fn unprocessable(detail: &str, errors: Vec<FieldError>) -> Self {
        let mut failure = Self::new(ErrorStatus::UNPROCESSABLE_ENTITY, "invalid", detail);
        failure.0.errors = errors;
        failure
    }

    pub(crate) fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    /// How many broken rules it lists.
    pub(crate) fn error_count(&self) -> usize {
        self.0.errors.len().max(1)
    }

    /// The broken rules that it lists, or itself as one.
    pub(crate) fn into_errors(self) -> Vec<FieldError> {
        if self.0.errors.is_empty() { vec![FieldError::new("", self.0.code, self.0.detail)] } else { self.0.errors }
    }

    pub(crate) fn because(mut self, cause: impl ToString) -> Self {
        self.0.cause = Some(sentence(cause.to_string(), SENTENCE));
        self
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    pub(crate) fn status(&self) -> ErrorStatus {
        self.0.status
    }

    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The text for the log: the cause, or else the sentence for the client.
    pub(crate) fn cause(&self) -> &str {
        self.0.cause.as_deref().unwrap_or(&self.0.detail)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::UnknownCluster | Refusal::BlankFleet | Refusal::NoMatchingCluster | Refusal::NoClusterInForce => {
                ErrorStatus::NOT_FOUND
            }
            Refusal::TypesChanged(_) => return Self::types_changed(refusal.to_string()),
            Refusal::Unreadable(SnapshotError::Unreadable { kind, id, .. }) => {
                return Self::unreadable_document(kind, id, &refusal);
            }
            Refusal::Unreadable(error) => return Self::internal(error),
            _ => ErrorStatus::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, refusal.code(), refusal.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Inner { status, code, detail, errors, header, .. } = &*self.0;
        let title = status.canonical_reason().unwrap_or("Error");
        let body = ProblemDetails::new(status.as_u16(), title, code, detail, errors);
        let mut response = (**status, axum::Json(body)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value.clone());
        }
        // For the middleware that observes requests: a failure is logged once, there.
        response.extensions_mut().insert(self);
        response
    }
}
