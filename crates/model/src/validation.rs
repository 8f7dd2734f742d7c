//! What can be wrong with a document, told so that a person can mend it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Excerpt, Id, Kind,
    excerpt::{beginning, printable, sentence},
};

/// Characters of a message, and of a pointer.
const MESSAGE: usize = 500;
const POINTER: usize = 1_000;

/// One broken rule: where, which, and in words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// The document, as `kind/id`, where a request concerns several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// A JSON pointer to the field; empty for the whole document.
    pub pointer: String,
    /// The rule's stable name, for example `required` or `pattern`.
    pub rule: String,
    /// A sentence.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "/" } else { self.pointer.as_str() };
        write!(f, "{}: {} ({})", printable(place.to_owned()), self.message, self.rule)
    }
}

impl FieldError {
    /// A broken rule. What it says is cut where it is long: values and names in it come from users.
    #[must_use]
    pub fn new(pointer: impl Into<String>, rule: &str, message: impl Into<String>) -> Self {
        Self {
            document: None,
            pointer: beginning(pointer.into(), POINTER),
            rule: rule.to_owned(),
            message: sentence(message.into(), MESSAGE),
        }
    }

    /// The same, said of a document.
    #[must_use]
    pub fn of(self, kind: &Kind, id: &Id) -> Self {
        Self { document: Some(format!("{kind}/{id}")), ..self }
    }
}

impl From<&jsonschema::ValidationError<'_>> for FieldError {
    fn from(error: &jsonschema::ValidationError<'_>) -> Self {
        // The message holds the whole value. A value that is long is left out, and the rule stays.
        let message = match Excerpt(error).to_string() {
            long if long.ends_with('…') => Excerpt(error.masked()).to_string(),
            whole => whole,
        };
        Self::new(error.instance_path().to_string(), error.kind().keyword(), message)
    }
}
