//! Explanations: where each value of an input comes from. The fleet computes them, the API serves them, and clients read them.

use std::iter;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Change, Id, Kind, Revision};

/// What one cluster is served of one definition, and where each value comes from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The cluster.
    pub cluster: Id,
    /// The type of the definition.
    pub kind: Kind,
    /// The definition.
    pub id: Id,
    /// The revision of the snapshot.
    pub revision: Revision,
    /// Every value of the input, in the order in which they are served.
    pub fields: Vec<ExplainedField>,
}

/// A value of an input.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedField {
    /// Where the value is in the input, as a JSON pointer.
    pub pointer: String,
    /// The value, exactly as it is served.
    pub value: Box<RawValue>,
    /// The source that set it.
    pub source: ValueSource,
    /// The values of weaker sources that it hides, the strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenValue>,
}

/// A value that a stronger source hides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HiddenValue {
    /// The value.
    pub value: Box<RawValue>,
    /// The source that set it.
    pub source: ValueSource,
}

/// What set a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSource {
    /// What kind of source it is.
    pub kind: SourceKind,
    /// The document that has the value, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<SourceDocument>,
}

/// A document that has a value. Who wrote it last, when and why is in the change log, and left out where that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceDocument {
    /// Its kind.
    pub kind: Kind,
    /// Its id.
    pub id: Id,
    /// The change that wrote it last.
    pub revision: Revision,
    /// When that change was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Why, if a reason was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A default of the resource type.
    Default,
    /// The definition.
    Definition,
    /// The entry of the cluster's list of references.
    Reference,
    /// The patches of the cluster.
    Patch,
    /// Another field of the cluster: its identity.
    Cluster,
    /// The server computes it from other values.
    Computed,
}

impl Explanation {
    /// The documents that its values come from, each as often as it has a value.
    pub fn documents_mut(&mut self) -> impl Iterator<Item = &mut SourceDocument> {
        let fields = self.fields.iter_mut().map(|field| (&mut field.source, &mut field.hidden));
        let sources = fields
            .flat_map(|(source, hidden)| iter::once(source).chain(hidden.iter_mut().map(|hidden| &mut hidden.source)));
        sources.filter_map(|source| source.document.as_mut())
    }
}

impl SourceDocument {
    /// Adds what the change log records of the change that wrote it last.
    pub fn add_change(&mut self, change: &Change) {
        self.at = Some(change.at);
        self.actor = Some(change.actor.clone());
        self.reason.clone_from(&change.reason);
    }
}
