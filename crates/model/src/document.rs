//! Documents: instances of resource types.

use std::{fmt::Write as _, sync::Arc};

use crate::{Id, Kind, Map, Op, Revision, Value};

/// The content of a document, as compact JSON text.
///
/// Text, because it is what stores keep and answers send, and because a fleet of ten thousand parsed trees would not
/// fit a small pod. Whoever needs fields parses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(Arc<str>);

impl Body {
    /// Writes fields down.
    #[must_use]
    pub fn from_fields(fields: &Map) -> Self {
        let mut text = String::from("{");
        for (at, (name, value)) in fields.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}{}:{value}", Value::from(name.as_str()));
        }
        text.push('}');
        Self(text.into())
    }

    /// Takes text that a store kept.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the fields. Fails only where the text was not written by us.
    pub fn fields(&self) -> Result<Map, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl Document {
    /// The operation that makes the document what it is.
    #[must_use]
    pub fn op(&self) -> Op {
        match self.state {
            State::Live => Op::Put(self.body.clone()),
            State::Retired => Op::Retire(self.body.clone()),
        }
    }
}

/// Whether a document is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In force.
    Live,
    /// A tombstone: no longer in force, still known. A retired cluster is decommissioned, which is the one reason to
    /// tell a whole cluster that it has no inputs.
    Retired,
}

/// One document, as it was last written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The resource type.
    pub kind: Kind,
    /// The id within the type.
    pub id: Id,
    /// The change that wrote it last.
    pub revision: Revision,
    /// Whether it is in force.
    pub state: State,
    /// What it says.
    pub body: Body,
}
