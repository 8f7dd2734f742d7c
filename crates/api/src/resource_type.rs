//! The resource types that a server knows.

use indexmap::IndexMap;
use model::{Map, ResourceType, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A resource type, for clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResourceType")]
pub struct TypeDescription {
    /// The singular, such as `platform_component`.
    pub kind: String,
    /// The plural, which is the path of its documents.
    pub plural: String,
    /// The last part of its Flux endpoint, such as `platform-components`.
    pub path: String,
    /// A sentence for people.
    pub description: String,
    /// Whether clusters can patch its documents.
    pub patchable: bool,
    /// Fields that are put into one object of an input, by the object's name.
    pub nest: IndexMap<String, Vec<String>>,
    /// Fields by which documents can be filtered.
    pub filters: Vec<String>,
    /// The JSON Schema of a document.
    #[schemars(with = "Map")]
    pub schema: Value,
    /// The list of a cluster that refers to it; the cluster type has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// What an input, $in, becomes on a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

impl TypeDescription {
    /// Whether its documents are the clusters.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.kind == ResourceType::CLUSTER
    }

    /// The name of a document of it: `kind/id`.
    #[must_use]
    pub fn name(&self, id: &str) -> String {
        format!("{}/{id}", self.kind)
    }

    /// The schemas of its fields, in the order in which they are declared.
    #[must_use]
    pub fn properties(&self) -> Option<&Map> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The schema of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.properties()?.get(name)
    }
}
