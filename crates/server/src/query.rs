//! Query strings: a handler takes every parameter by name, and a parameter that is not taken is an error. A misspelt
//! parameter must not silently become its default.

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
};
use model::{Excerpt, FieldError, MAX_SAFE_INTEGER, Revision, yaml};
use percent_encoding::percent_decode_str;

use crate::failure::Failure;

/// The largest count that a parameter may have.
pub(crate) const MAX_COUNT: u64 = 1_000_000;

/// The most parameters of a request: every filter is compared with every document.
const MAX_PARAMETERS: usize = 64;

/// The parameters that the handler has not taken yet.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        if !parts.uri.query().is_none_or(is_percent_encoded) {
            return Err(refuse(
                "",
                "each % is followed by two hexadecimal digits, and the decoded text is UTF-8".to_owned(),
            ));
        }
        match Query::<Vec<(String, String)>>::try_from_uri(&parts.uri) {
            Ok(Query(pairs)) if pairs.len() <= MAX_PARAMETERS => Ok(Self(pairs)),
            Ok(Query(pairs)) => {
                let message = format!("a query has at most {MAX_PARAMETERS} parameters, and this has {}", pairs.len());
                Err(refuse("", message))
            }
            Err(error) => Err(refuse("", error.body_text())),
        }
    }
}

/// Whether it can be decoded without guessing: a filter must never mean something else than was typed.
fn is_percent_encoded(query: &str) -> bool {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    query.split('%').skip(1).all(is_escape) && percent_decode_str(query).decode_utf8().is_ok()
}

fn refuse(name: &str, message: String) -> Failure {
    Failure::invalid_query(FieldError::new(yaml::child("", name), "query", message))
}

impl Params {
    /// Whether a parameter is present and not taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Takes all values of a parameter.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, rest) = std::mem::take(&mut self.0).into_iter().partition(|(known, _)| known == name);
        self.0 = rest;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a parameter that is given at most once.
    pub(crate) fn one(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let mut values = self.all(name);
        match values.len() {
            0 => Ok(None),
            1 => Ok(values.pop()),
            _ => Err(refuse(name, format!("\"{name}\" is given more than once"))),
        }
    }

    /// Takes a parameter of a type.
    pub(crate) fn parsed<T: std::str::FromStr>(&mut self, name: &str, what: &str) -> Result<Option<T>, Failure> {
        let value = self.one(name)?;
        value
            .map(|value| value.parse().map_err(|_| refuse(name, format!("\"{}\" is not {what}", Excerpt(&value)))))
            .transpose()
    }

    /// Takes a number within bounds.
    pub(crate) fn bounded(&mut self, name: &str, most: u64) -> Result<Option<u64>, Failure> {
        let number = self.parsed::<u64>(name, "a number")?;
        if number.is_some_and(|number| number > most) {
            return Err(refuse(name, format!("\"{name}\" is at most {most}")));
        }
        Ok(number)
    }

    /// Takes a count, such as a limit or an offset.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        self.bounded(name, MAX_COUNT)
    }

    /// Takes a revision.
    pub(crate) fn revision(&mut self, name: &str) -> Result<Option<Revision>, Failure> {
        Ok(self.bounded(name, MAX_SAFE_INTEGER)?.map(Revision))
    }

    /// Takes a switch: `true` or `false`, and `false` if it is absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Failure> {
        Ok(self.parsed(name, "true or false")?.unwrap_or(false))
    }

    /// Takes a parameter with one of a few values.
    pub(crate) fn word(&mut self, name: &str, words: &[&str]) -> Result<Option<String>, Failure> {
        match self.one(name)? {
            Some(value) if !words.contains(&value.as_str()) => {
                Err(refuse(name, format!("\"{name}\" is {}", words.join(" or "))))
            }
            value => Ok(value),
        }
    }

    /// Takes all remaining parameters but `others`, if each is known.
    pub(crate) fn rest(
        &mut self,
        known: impl Fn(&str) -> bool,
        others: &[&str],
    ) -> Result<Vec<(String, String)>, Failure> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (others, rest): (Vec<_>, Vec<_>) = all.partition(|(name, _)| others.contains(&name.as_str()));
        self.0 = others;
        match rest.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => Err(refuse(name, format!("\"{}\" is not a parameter of this path", Excerpt(name)))),
            None => Ok(rest),
        }
    }

    /// Checks that no parameter is left.
    pub(crate) fn none_left(mut self) -> Result<(), Failure> {
        self.rest(|_| false, &[]).map(drop)
    }
}
