//! `If-Match` and `If-None-Match`: an ETag is the revision that wrote the document last.

use axum::{
    extract::FromRequestParts,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{IF_MATCH, IF_NONE_MATCH},
        request::Parts,
    },
};
use model::{Document, Revision, State};

use crate::failure::Failure;

/// The ETag of a document.
pub(crate) fn etag(revision: Revision) -> HeaderValue {
    // A number in quotes is a header value.
    HeaderValue::try_from(format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// What a client expects a document to be.
#[derive(Clone, Default)]
pub(crate) struct Precondition {
    matches: Option<Tags>,
    matches_not: Option<Tags>,
}

#[derive(Clone)]
struct Tags(Vec<String>);

impl Tags {
    fn of(headers: &HeaderMap, name: &HeaderName) -> Option<Self> {
        // A tag that is no text is no tag of ours: it matches nothing.
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let tags = values.iter().flat_map(|value| value.split(','));
        let tags = tags.map(|tag| tag.trim().trim_start_matches("W/").to_owned());
        (!values.is_empty()).then(|| Self(tags.collect()))
    }

    fn hold(&self, document: Option<&Document>) -> bool {
        let live = document.filter(|document| document.state == State::Live);
        live.is_some_and(|document| self.name(document.revision))
    }

    fn name(&self, revision: Revision) -> bool {
        let tag = format!("\"{revision}\"");
        self.0.iter().any(|known| known == "*" || *known == tag)
    }
}

impl<S: Sync> FromRequestParts<S> for Precondition {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self { matches: Tags::of(&parts.headers, &IF_MATCH), matches_not: Tags::of(&parts.headers, &IF_NONE_MATCH) })
    }
}

impl Precondition {
    /// For a change to something that has no ETag: such a request expects what nobody can check.
    pub(crate) fn none_given(&self) -> Result<(), Failure> {
        if self.matches.is_none() && self.matches_not.is_none() {
            return Ok(());
        }
        let detail = "If-Match and If-None-Match are for paths of one document in force";
        Err(Failure::new(StatusCode::BAD_REQUEST, "no-precondition", detail))
    }

    /// For a change: 412 where the document is not what the client expects.
    pub(crate) fn check(&self, document: Option<&Document>) -> Result<(), Failure> {
        let good = self.matches.as_ref().is_none_or(|tags| tags.hold(document))
            && self.matches_not.as_ref().is_none_or(|tags| !tags.hold(document));
        if good {
            return Ok(());
        }
        let now = match document {
            None => "it is not there".to_owned(),
            Some(document) if document.state == State::Retired => "it is decommissioned".to_owned(),
            Some(document) => format!("its ETag is \"{}\"", document.revision),
        };
        let detail = format!("the document is not what the request expects: {now}");
        Err(Failure::new(StatusCode::PRECONDITION_FAILED, "precondition-failed", detail))
    }

    /// For a read: whether the client has what a revision wrote already.
    pub(crate) fn is_known(&self, revision: Revision) -> bool {
        self.matches_not.as_ref().is_some_and(|tags| tags.name(revision))
    }
}
