//! Errors in documents, with what a person needs to correct them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Excerpt, Id, Kind,
    excerpt::{beginning, printable, sentence},
};

/// The most characters of a message, and of a pointer.
const MAX_MESSAGE: usize = 500;
const MAX_POINTER: usize = 1_000;

/// One violated rule: its pointer, its name, and a message.
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
        let pointer = if self.pointer.is_empty() { "/" } else { self.pointer.as_str() };
        write!(f, "{}: {} ({})", printable(pointer.to_owned()), self.message, self.rule)
    }
}

impl FieldError {
    /// A violated rule. A long message is truncated: it contains values and names from users.
    #[must_use]
    pub fn new(pointer: impl Into<String>, rule: &str, message: impl Into<String>) -> Self {
        Self {
            document: None,
            pointer: beginning(pointer.into(), MAX_POINTER),
            rule: rule.to_owned(),
            message: sentence(message.into(), MAX_MESSAGE),
        }
    }

    /// The same error, for a document of a request about several.
    #[must_use]
    pub fn in_document(self, kind: &Kind, id: &Id) -> Self {
        Self { document: Some(format!("{kind}/{id}")), ..self }
    }
}

impl From<&jsonschema::ValidationError<'_>> for FieldError {
    fn from(error: &jsonschema::ValidationError<'_>) -> Self {
        // The message contains the whole value. A long value is left out, so that the rule can be read.
        let message = match Excerpt(error).to_string() {
            long if long.ends_with('…') => Excerpt(error.masked()).to_string(),
            whole => whole,
        };
        Self::new(error.instance_path().to_string(), error.kind().keyword(), message)
    }
}
