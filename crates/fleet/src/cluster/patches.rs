//! What a cluster changes of a component for itself.

use model::{
    Map, Value,
    helm::{self, PatchError},
};

/// The patches of one component.
#[derive(Debug)]
pub(crate) struct Patches {
    /// The flat patches and the typed values that they describe, as members of a JSON object.
    pub(crate) members: Result<Box<str>, Box<PatchError>>,
    /// Whether all are free names of variables, which patches of an OCI artifact must be.
    are_variables: bool,
}

impl Patches {
    pub(super) fn read(patches: Map) -> Self {
        let are_variables = no_variables(&patches).next().is_none();
        let members = helm::expand(&patches).map_err(Box::new).map(|values| {
            format!("\"patches\":{},\"values\":{}", Value::Object(patches), Value::Object(values)).into()
        });
        Self { members, are_variables }
    }

    /// The keys that are not free names of variables.
    pub(crate) fn no_variables(&self) -> Vec<String> {
        match &self.members {
            Ok(members) if !self.are_variables => {
                let value = serde_json::from_str::<Value>(&format!("{{{members}}}")).unwrap_or_default();
                value["patches"].as_object().into_iter().flat_map(no_variables).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Variables that every artifact is given; and what is behind the name of each that is given in quotes too.
const IDENTITY: [&str; 3] = ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT"];
const QUOTED: &str = "_STR";

fn no_variables(patches: &Map) -> impl Iterator<Item = &String> {
    let taken = |key: &str| {
        let plain = key.strip_suffix(QUOTED);
        IDENTITY.contains(&plain.unwrap_or(key)) || plain.is_some_and(|plain| patches.contains_key(plain))
    };
    patches.keys().filter(move |key| !is_variable(key) || taken(key))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
