//! Who may do what. Authority is an argument: a handler that reads takes [`ReadAccess`], one that writes [`WriteAccess`], and
//! there is no other way to get one than a valid token: their fields are private, so no handler can build one itself.
//!
//! An access is also the only way to the data: [`GuardedFleet`] shows the served snapshot to this module alone, which returns it
//! from an access. A handler that forgets the token has nothing to send.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use fleet::{Reader, Snapshot};
use jiff::Timestamp;
use model::Origin;
use sha2::{Digest as _, Sha256};
use store::Store;
use subtle::{Choice, ConstantTimeEq as _};

use crate::{
    App,
    failure::{ErrorStatus, Failure},
    observe::RequestId,
};

/// A bearer token. Only its digest is stored: the token cannot be printed, and a comparison takes the same time for every
/// guess, whatever its length.
#[derive(Clone)]
pub struct Token([u64; 4]);

impl Token {
    /// Parses a token and trims the white space around it: files end in a newline, and clients trim it too.
    /// None if it is empty or has a character that cannot be sent in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self::digest(text))
    }

    fn digest(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let (words, _) = digest.as_chunks();
        Self(std::array::from_fn(|at| u64::from_ne_bytes(words[at])))
    }

    fn matches(&self, other: &Self) -> Choice {
        self.0.iter().zip(&other.0).fold(Choice::from(1), |equal, (one, other)| equal & one.ct_eq(other))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The tokens that a server accepts.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// May read.
    pub read: Token,
    /// May read and write.
    pub write: Token,
    /// The name of the token that may write, for the audit trail.
    pub writer: &'static str,
}

impl Tokens {
    /// What the `Authorization` header of a request allows: nothing, reading, or reading and writing.
    pub(crate) fn allow(&self, authorization: &str) -> Option<Allowed> {
        let (scheme, token) = authorization.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        // HTTP knows only these two characters as white space (RFC 9110, 5.6.3). Other Unicode white space is part of the token.
        let token = Token::digest(token.trim_matches([' ', '\t']));
        let (read, write) = (self.read.matches(&token), self.write.matches(&token));
        match (bool::from(write), bool::from(read)) {
            (true, _) => Some(Allowed::Write),
            (false, true) => Some(Allowed::Read),
            (false, false) => None,
        }
    }
}

#[derive(PartialEq, Eq)]
pub(crate) enum Allowed {
    Read,
    Write,
}

/// What the credentials of a request allow.
fn allowed(headers: &HeaderMap, app: &App) -> Option<Allowed> {
    app.tokens.allow(headers.get(header::AUTHORIZATION)?.to_str().ok()?)
}

/// The served snapshot, which only this module can read.
pub(crate) struct GuardedFleet(Reader);

impl GuardedFleet {
    pub(crate) fn new(reader: Reader) -> Self {
        Self(reader)
    }

    fn snapshot(&self, app: &App) -> Result<Arc<Snapshot>, Failure> {
        self.0.snapshot().ok_or_else(|| app.no_snapshot())
    }
}

impl App {
    /// The served snapshot without a token, for `/ready` and `/metrics` only: probes and scrapers have none. They send revisions,
    /// ages, counts, paths of types and ids of clusters, and no content of a document. A test finds any other caller.
    pub(crate) fn probe_snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        self.fleet.snapshot(self)
    }
}

/// The right to read, proven by a token, and the way to what may be read. A poll borrows the application (`ReadAccess<&App>`),
/// so its access costs nothing.
#[derive(Clone)]
pub(crate) struct ReadAccess<A = App>(A);

impl<'a> ReadAccess<&'a App> {
    /// Checks the credentials of a request.
    pub(crate) fn from_headers(app: &'a App, headers: &HeaderMap) -> Result<Self, Failure> {
        allowed(headers, app).map(|_| Self(app)).ok_or_else(Failure::unauthorized)
    }
}

impl<A: Borrow<App>> ReadAccess<A> {
    /// The application that has checked the token.
    pub(crate) fn app(&self) -> &App {
        self.0.borrow()
    }

    /// The same access, for as long as this one exists.
    pub(crate) fn borrowed(&self) -> ReadAccess<&App> {
        ReadAccess(self.app())
    }

    /// The served snapshot, or the failure to respond with while there is none.
    pub(crate) fn fleet(&self) -> Result<Arc<Snapshot>, Failure> {
        self.app().fleet.snapshot(self.app())
    }

    /// The served snapshot without a reference count, for as long as it takes to read it; none while there is none.
    pub(crate) fn newest(&self) -> impl Deref<Target = Option<Arc<Snapshot>>> {
        self.app().fleet.0.newest()
    }

    /// The store, for what is not in the served snapshot; or the failure to respond with until it is open.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, Failure> {
        self.app().change_log.store()
    }
}

impl FromRequestParts<App> for ReadAccess {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        ReadAccess::from_headers(app, &parts.headers).map(|ReadAccess(app)| Self(app.clone()))
    }
}

/// The right to write, proven by a token, with what the audit trail records about the change.
pub(crate) struct WriteAccess {
    /// Who may write may read.
    read: ReadAccess,
    /// The name of the token.
    actor: &'static str,
    /// The reason for the change, if the request has one.
    reason: Option<String>,
    /// The id of the request.
    request_id: Option<String>,
}

impl WriteAccess {
    /// The right to read, which this includes.
    pub(crate) fn reading(&self) -> &ReadAccess {
        &self.read
    }

    /// The served snapshot, or the failure to respond with while there is none.
    pub(crate) fn fleet(&self) -> Result<Arc<Snapshot>, Failure> {
        self.read.fleet()
    }

    /// The origin of a change that is made with this access.
    pub(crate) fn origin(&self, at: Timestamp) -> Origin {
        Origin { at, actor: self.actor.to_owned(), reason: self.reason.clone(), request_id: self.request_id.clone() }
    }
}

const REASON: HeaderName = HeaderName::from_static("x-change-reason");
const MAX_REASON: usize = 1_000;

impl FromRequestParts<App> for WriteAccess {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        match allowed(&parts.headers, app) {
            None => return Err(Failure::unauthorized()),
            Some(Allowed::Read) => {
                return Err(Failure::new(ErrorStatus::FORBIDDEN, "forbidden", "this token may read and not write"));
            }
            Some(Allowed::Write) => {}
        }
        let reason = match parts.headers.get(REASON) {
            None => None,
            Some(value) => match std::str::from_utf8(value.as_bytes()) {
                Ok(reason) if reason.len() <= MAX_REASON => Some(reason.trim().to_owned()),
                _ => {
                    let detail = format!("X-Change-Reason is text of at most {MAX_REASON} bytes");
                    return Err(Failure::new(ErrorStatus::BAD_REQUEST, "invalid-reason", detail));
                }
            },
        };
        let request_id = parts.extensions.get::<RequestId>().map(|RequestId(id)| id.clone());
        let reason = reason.filter(|reason| !reason.is_empty());
        Ok(Self { read: ReadAccess(app.clone()), actor: app.tokens.writer, reason, request_id })
    }
}
