//! Parts of the answer to a poll, `{"inputs": […]}`, that are the same for every resource type. The fleet writes them as prepared
//! bytes; these types describe the bytes, and a test compares them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cluster that an input is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterIdentity {
    /// The cluster's name.
    pub name: String,
    /// The DNS name under which it polls.
    pub dns: String,
    /// Its environment.
    pub environment: String,
}

/// The one record of an answer that explicitly has no inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoneInput {
    /// Reserved: no document has this id.
    #[schemars(extend("enum" = ["none"]))]
    pub id: String,
    /// Always true.
    #[schemars(extend("enum" = [true]))]
    pub none: bool,
    /// The cluster that was asked for, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterIdentity>,
}
