//! Who may do what. Authority is an argument: a handler that reads takes [`ReadAccess`], and there is no other way to
//! get one than a valid token.

use std::fmt;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::{App, failure::Failure};

/// A bearer token. Kept as a digest: it cannot be printed, and comparing takes the same time for every guess, whatever
/// its length.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// Takes a token, without the white space around it: files end in a newline, and clients cut it off too.
    /// None where nothing remains, or something that cannot stand in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let holds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        holds.then(|| Self::digest(text))
    }

    fn digest(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
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
}

impl Tokens {
    fn may_read(&self, headers: &HeaderMap) -> bool {
        let Some(token) = bearer(headers).map(Token::digest) else { return false };
        (self.read.is(&token) | self.write.is(&token)).into()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The right to read, proven by a token.
pub(crate) struct ReadAccess(());

impl FromRequestParts<App> for ReadAccess {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        if app.tokens.may_read(&parts.headers) { Ok(Self(())) } else { Err(Failure::unauthorized()) }
    }
}
