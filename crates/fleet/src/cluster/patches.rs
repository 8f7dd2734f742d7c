//! What a cluster changes of a component for itself.

use std::{fmt::Write as _, sync::Arc};

use model::{
    Map, Value,
    helm::{self, PatchError},
};

/// The patches of one component.
#[derive(Debug)]
pub(crate) struct Patches {
    /// What is patched.
    pub(crate) name: Arc<str>,
    /// Where in the cluster's text they are.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether all are free names of variables, which patches of an OCI artifact must be.
    pub(crate) are_variables: bool,
    /// Why they have no meaning, if they have none.
    pub(crate) refused: Option<Box<PatchError>>,
}

impl Patches {
    /// Adds to a cluster's text what patches come to.
    pub(super) fn read(name: Arc<str>, patches: Map, text: &mut String) -> Result<Self, String> {
        let are_variables = no_variables(&patches).next().is_none();
        let at = |text: &String| u32::try_from(text.len()).map_err(|_| "patches are too long".to_owned());
        let start = at(text)?;
        let refused = match helm::expand(&patches) {
            Ok(values) => {
                let (patches, values) = (Value::Object(patches), Value::Object(values));
                write!(text, "\"patches\":{patches},\"values\":{values}").map_err(|error| error.to_string())?;
                None
            }
            Err(error) => Some(Box::new(error)),
        };
        Ok(Self { name, start, end: at(text)?, are_variables, refused })
    }
}

/// Variables that every artifact is given; and what is behind the name of each that is given in quotes too.
const IDENTITY: [&str; 3] = ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT"];
const QUOTED: &str = "_STR";

/// The keys that are not free names of variables.
pub(crate) fn no_variables(patches: &Map) -> impl Iterator<Item = &String> {
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
