//! What is wrong: with a request (problem details, RFC 9457), and with stored documents.

use std::borrow::Cow;

use indexmap::IndexMap;
use model::{FieldError, Id, Kind, limits::ERRORS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// RFC 9457 problem details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem", example = Self::example())]
pub struct ProblemDetails {
    /// Always `about:blank`: the status names the sort of problem, and `code` the problem.
    #[serde(default = "about_blank")]
    pub r#type: Cow<'static, str>,
    /// The name of the status.
    #[serde(default)]
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// Stable; for programs. The client leaves it empty where it was not a flux-resourceset server that answered.
    #[serde(default)]
    pub code: Cow<'static, str>,
    /// A sentence for people.
    pub detail: String,
    /// The broken rules, or the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ERRORS))]
    pub errors: Vec<FieldError>,
    /// How many broken rules are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_errors: Option<usize>,
}

fn about_blank() -> Cow<'static, str> {
    "about:blank".into()
}

impl ProblemDetails {
    /// The body of a failed request, with as many of the broken rules as one answer lists.
    #[must_use]
    pub fn new(status: u16, title: &'static str, code: &'static str, detail: &str, errors: &[FieldError]) -> Self {
        Self {
            r#type: about_blank(),
            title: title.into(),
            status,
            code: code.into(),
            detail: detail.to_owned(),
            errors: errors[..errors.len().min(ERRORS)].to_vec(),
            more_errors: errors.len().checked_sub(ERRORS).filter(|more| *more > 0),
        }
    }

    fn example() -> Self {
        Self::new(404, "Not Found", "unknown-cluster", "no cluster has this DNS name", &[])
    }
}

/// A problem of a stored document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentProblem {
    /// The document's kind.
    pub kind: Kind,
    /// The document's id.
    pub id: Id,
    /// A JSON pointer to the place in the document.
    pub pointer: String,
    /// The rule's stable name.
    pub rule: Cow<'static, str>,
    /// A sentence for people.
    pub message: String,
}

/// How many problems stored documents have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = Self::example())]
pub struct ProblemCounts {
    /// In all.
    pub total: u64,
    /// By the rule's stable name.
    pub rules: IndexMap<Cow<'static, str>, u64>,
}

impl ProblemCounts {
    fn example() -> Self {
        Self { total: 1, rules: IndexMap::from([("missing-definition".into(), 1)]) }
    }
}
