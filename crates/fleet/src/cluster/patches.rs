//! What a cluster changes of a component for itself.

use std::{borrow::Cow, sync::Arc};

use model::{
    Map,
    helm::{self, PatchError},
    prune_nulls,
};

use crate::merge::Members;

/// The patches of one component.
#[derive(Debug)]
pub(crate) struct Patches {
    /// What is patched.
    pub(crate) name: Arc<str>,
    /// Whether all are free names of variables, which patches of an OCI artifact must be.
    pub(crate) are_variables: bool,
    /// Why they have no meaning, if they have none.
    pub(crate) refused: Option<Box<PatchError>>,
}

impl Patches {
    /// Adds to a cluster's text what patches come to, as more members of a JSON object: nothing, if they have no meaning.
    pub(super) fn read(name: Arc<str>, patches: &str, text: &mut String) -> Result<Self, String> {
        let members: Members<'_> = serde_json::from_str(patches).map_err(|error| error.to_string())?;
        let (are_variables, refused) = if let Some(flat) = Flat::of(&members) {
            flat.write(patches, text);
            let keys: Vec<_> = members.0.iter().map(|(key, _)| &**key).collect();
            (no_variables(&keys).next().is_none(), None)
        } else {
            write_tree(patches, text).map_err(|error| error.to_string())?
        };
        Ok(Self { name, are_variables, refused })
    }
}

/// Writes any patches; says whether all are free names of variables, and why they have no meaning, if they have none.
fn write_tree(patches: &str, text: &mut String) -> serde_json::Result<(bool, Option<Box<PatchError>>)> {
    let mut tree: Map = serde_json::from_str(patches)?;
    prune_nulls(&mut tree);
    let keys: Vec<_> = tree.keys().map(String::as_str).collect();
    let are_variables = no_variables(&keys).next().is_none();
    let values = match helm::expand(&tree) {
        Ok(values) => serde_json::to_string(&values)?,
        Err(error) => return Ok((are_variables, Some(Box::new(error)))),
    };
    text.push_str(",\"patches\":");
    // Where nothing was taken out, they say what they said.
    if patches.contains("null") {
        text.push_str(&serde_json::to_string(&tree)?);
    } else {
        text.push_str(patches);
    }
    text.push_str(",\"values\":");
    text.push_str(&values);
    Ok((are_variables, None))
}

/// Patches whose keys are no paths and whose values are scalars, which most are: their tree is what they say, with types
/// and in order. A start reads those of a whole fleet, so no tree is built of them.
struct Flat<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Flat<'a> {
    fn of(members: &'a Members<'a>) -> Option<Self> {
        let is_plain = |text: &str| !text.is_empty() && !text.contains(['.', '[', ']', '\\', '"']);
        let is_scalar = |json: &str| !json.starts_with(['{', '[', 'n']) && !json.contains('\\');
        let mut all: Vec<_> = members.0.iter().map(|(key, value)| (&**key, value.get())).collect();
        all.sort_unstable();
        let good = all.iter().all(|(key, value)| is_plain(key) && is_scalar(value));
        let once = all.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let no_escapes = members.0.iter().all(|(key, _)| matches!(key, Cow::Borrowed(_)));
        (good && once && no_escapes).then_some(Self(all))
    }

    fn write(&self, patches: &str, text: &mut String) {
        text.push_str(",\"patches\":");
        text.push_str(patches);
        text.push_str(",\"values\":{");
        for (at, (key, value)) in self.0.iter().enumerate() {
            text.push_str(if at == 0 { "\"" } else { ",\"" });
            text.push_str(key);
            text.push_str("\":");
            let typed = value.strip_prefix('"').and_then(|text| helm::typed_text(text.strip_suffix('"')?));
            match typed {
                Some(typed) => text.push_str(&typed.to_string()),
                None => text.push_str(value),
            }
        }
        text.push('}');
    }
}

/// Variables that every artifact is given; and what is behind the name of each that is given in quotes too.
const IDENTITY: [&str; 3] = ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT"];
const QUOTED: &str = "_STR";

/// The keys that are not free names of variables.
pub(crate) fn no_variables<'a>(keys: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let taken = |key: &str| {
        let plain = key.strip_suffix(QUOTED);
        IDENTITY.contains(&plain.unwrap_or(key)) || plain.is_some_and(|plain| keys.contains(&plain))
    };
    keys.iter().copied().filter(move |key| !is_variable(key) || taken(key))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
