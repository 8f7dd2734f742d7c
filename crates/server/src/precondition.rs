//! `If-Match` and `If-None-Match`: an ETag is the revision that wrote the document last and, once an operator has accepted another
//! history of the change log, its epoch: revisions are counted anew there.
//!
//! As RFC 9110 has it, `If-Match` compares strongly, so that a weak tag never matches: a proxy that changed an answer made it weak.
//! `If-None-Match` compares weakly. What is no tag matches nothing.

use axum::{
    extract::FromRequestParts,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{IF_MATCH, IF_NONE_MATCH},
        request::Parts,
    },
};
use model::{Document, Epoch, Revision, State};

use crate::failure::{ErrorStatus, Failure};

/// The ETag of a document.
pub(crate) fn etag(revision: Revision, epoch: Epoch) -> HeaderValue {
    // Numbers in quotes are a header value.
    HeaderValue::try_from(tag_of(revision, epoch)).unwrap_or(HeaderValue::from_static("\"\""))
}

/// With its quotes.
fn tag_of(revision: Revision, epoch: Epoch) -> String {
    if epoch == Epoch::default() { format!("\"{revision}\"") } else { format!("\"{revision}.{epoch}\"") }
}

/// What a client expects a document to be.
#[derive(Clone, Default)]
pub(crate) struct Precondition {
    matches: Option<Tags>,
    matches_not: Option<Tags>,
}

#[derive(Clone)]
struct Tags(Vec<Tag>);

#[derive(Clone, PartialEq, Eq)]
enum Tag {
    /// `*`: whatever there is.
    Any,
    /// With its quotes.
    Strong(String),
    /// With its quotes, and without the `W/`.
    Weak(String),
}

impl Tag {
    /// Takes the first tag off a list, with what stands between it and the next. None where the list does not begin with one.
    fn take(list: &str) -> Option<(Self, &str)> {
        let list = list.trim_start_matches([' ', '\t', ',']);
        if let Some(rest) = list.strip_prefix('*') {
            return Some((Self::Any, rest));
        }
        let quoted = list.strip_prefix("W/").unwrap_or(list);
        // A comma between the quotes is part of the tag.
        let end = quoted.strip_prefix('"')?.find('"')? + 2;
        let (text, rest) = quoted.split_at(end);
        let is_weak = quoted.len() < list.len();
        let tag = if is_weak { Self::Weak(text.to_owned()) } else { Self::Strong(text.to_owned()) };
        Some((tag, rest))
    }
}

impl Tags {
    fn of(headers: &HeaderMap, name: &HeaderName, takes_weak: bool) -> Option<Self> {
        let mut values = headers.get_all(name).iter().peekable();
        values.peek()?;
        let mut tags = Vec::new();
        // A value that is no text has no tag of ours.
        for mut list in values.filter_map(|value| value.to_str().ok()) {
            while let Some((tag, rest)) = Tag::take(list) {
                tags.push(tag);
                list = rest.trim_start_matches([' ', '\t']);
                if !list.is_empty() && !list.starts_with(',') {
                    break;
                }
            }
            // A list that goes on with something else is no list of tags: it matches nothing.
            if !list.trim_matches([' ', '\t', ',']).is_empty() {
                return Some(Self(Vec::new()));
            }
        }
        if tags.len() > 1 && tags.contains(&Tag::Any) {
            tags.clear();
        }
        tags.retain(|tag| takes_weak || !matches!(tag, Tag::Weak(_)));
        Some(Self(tags))
    }

    fn hold(&self, document: Option<&Document>, epoch: Epoch) -> bool {
        let live = document.filter(|document| document.state == State::Live);
        live.is_some_and(|document| self.name(document.revision, epoch))
    }

    fn name(&self, revision: Revision, epoch: Epoch) -> bool {
        let name = tag_of(revision, epoch);
        self.0.iter().any(|tag| match tag {
            Tag::Any => true,
            Tag::Strong(tag) | Tag::Weak(tag) => *tag == name,
        })
    }
}

impl<S: Sync> FromRequestParts<S> for Precondition {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let (matches, matches_not) =
            (Tags::of(&parts.headers, &IF_MATCH, false), Tags::of(&parts.headers, &IF_NONE_MATCH, true));
        Ok(Self { matches, matches_not })
    }
}

impl Precondition {
    /// For a change to something that has no ETag: such a request expects what cannot be checked.
    pub(crate) fn none_given(&self) -> Result<(), Failure> {
        if self.matches.is_none() && self.matches_not.is_none() {
            return Ok(());
        }
        let detail = "If-Match and If-None-Match are for paths of one document in force";
        Err(Failure::new(ErrorStatus::BAD_REQUEST, "no-precondition", detail))
    }

    /// For a change: 412 where the document, in this epoch of the change log, is not what the client expects.
    pub(crate) fn check(&self, document: Option<&Document>, epoch: Epoch) -> Result<(), Failure> {
        let good = self.matches.as_ref().is_none_or(|tags| tags.hold(document, epoch))
            && self.matches_not.as_ref().is_none_or(|tags| !tags.hold(document, epoch));
        if good {
            return Ok(());
        }
        let now = match document {
            None => "it is not there".to_owned(),
            Some(document) if document.state == State::Retired => "it is decommissioned".to_owned(),
            Some(document) => format!("its ETag is {}", tag_of(document.revision, epoch)),
        };
        let detail = format!("the document is not what the request expects: {now}");
        Err(Failure::new(ErrorStatus::PRECONDITION_FAILED, "precondition-failed", detail))
    }

    /// For a read: whether the client has what a revision wrote already.
    pub(crate) fn is_known(&self, revision: Revision, epoch: Epoch) -> bool {
        self.matches_not.as_ref().is_some_and(|tags| tags.name(revision, epoch))
    }
}
