//! The statuses that a failure can have.

use std::ops::Deref;

use axum::http::StatusCode;

/// An HTTP status from 400 to 599. A failure can have no other, so it cannot be sent as a 200, which a cluster would obey.
/// Only the constants below exist, and each is checked when the server is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorStatus(StatusCode);

impl ErrorStatus {
    pub(crate) const BAD_REQUEST: Self = Self::new(StatusCode::BAD_REQUEST);
    pub(crate) const UNAUTHORIZED: Self = Self::new(StatusCode::UNAUTHORIZED);
    pub(crate) const FORBIDDEN: Self = Self::new(StatusCode::FORBIDDEN);
    pub(crate) const NOT_FOUND: Self = Self::new(StatusCode::NOT_FOUND);
    pub(crate) const METHOD_NOT_ALLOWED: Self = Self::new(StatusCode::METHOD_NOT_ALLOWED);
    pub(crate) const REQUEST_TIMEOUT: Self = Self::new(StatusCode::REQUEST_TIMEOUT);
    pub(crate) const CONFLICT: Self = Self::new(StatusCode::CONFLICT);
    pub(crate) const GONE: Self = Self::new(StatusCode::GONE);
    pub(crate) const PRECONDITION_FAILED: Self = Self::new(StatusCode::PRECONDITION_FAILED);
    pub(crate) const PAYLOAD_TOO_LARGE: Self = Self::new(StatusCode::PAYLOAD_TOO_LARGE);
    pub(crate) const UNSUPPORTED_MEDIA_TYPE: Self = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    pub(crate) const UNPROCESSABLE_ENTITY: Self = Self::new(StatusCode::UNPROCESSABLE_ENTITY);
    pub(crate) const TOO_MANY_REQUESTS: Self = Self::new(StatusCode::TOO_MANY_REQUESTS);
    pub(crate) const INTERNAL_SERVER_ERROR: Self = Self::new(StatusCode::INTERNAL_SERVER_ERROR);
    pub(crate) const SERVICE_UNAVAILABLE: Self = Self::new(StatusCode::SERVICE_UNAVAILABLE);

    /// Private, for the constants only: a constant that is not an error status fails the build.
    const fn new(status: StatusCode) -> Self {
        assert!(matches!(status.as_u16(), 400..=599), "a failure has an error status");
        Self(status)
    }
}

impl Deref for ErrorStatus {
    type Target = StatusCode;

    fn deref(&self) -> &StatusCode {
        &self.0
    }
}
