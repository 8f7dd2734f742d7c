//! What can be wrong with a document, told so that a person can mend it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Id, Kind};

/// One broken rule: where, which, and in words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
        let place = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{place}: {} ({})", self.message, self.rule)
    }
}

impl FieldError {
    /// A rule that this crate's own code keeps.
    #[must_use]
    pub fn new(pointer: impl Into<String>, rule: &str, message: impl Into<String>) -> Self {
        Self { document: None, pointer: pointer.into(), rule: rule.to_owned(), message: message.into() }
    }

    /// The same, said of a document.
    #[must_use]
    pub fn of(self, kind: &Kind, id: &Id) -> Self {
        Self { document: Some(format!("{kind}/{id}")), ..self }
    }
}

impl From<&jsonschema::ValidationError<'_>> for FieldError {
    fn from(error: &jsonschema::ValidationError<'_>) -> Self {
        Self {
            document: None,
            pointer: error.instance_path().to_string(),
            rule: error.kind().keyword().to_owned(),
            message: error.to_string(),
        }
    }
}
