//! What a cluster changes of a component for itself.

use std::{borrow::Cow, sync::Arc};

use model::{
    Map,
    helm::{self, PatchError},
    prune_nulls,
};

use super::TextRange;
use crate::merge::Members;

/// The patches of one component.
#[derive(Debug)]
pub(crate) struct Patches {
    /// The id of the component.
    pub(crate) name: Arc<str>,
    /// Where in the cluster's text the members `patches` and `values` are that every input of the component gets: JSON that
    /// begins with a comma. Or why the patches cannot be expanded.
    pub(crate) members: Result<TextRange, Box<PatchError>>,
    /// How many keys are no free names of variables, which patches of an OCI artifact must be. None, if they cannot be expanded.
    pub(crate) not_variables: u32,
}

/// The values that patches describe, as JSON, and how many keys are no free names of variables.
type Expanded = Result<(String, usize), PatchError>;

impl Patches {
    /// Reads the patches of a component from their JSON. What is served of them is added to the cluster's text.
    pub(super) fn read(name: Arc<str>, json: &str, written: &mut String) -> Result<Self, String> {
        let Members(members) = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let members: Vec<_> = members.into_iter().map(|(name, value)| (name, value.get())).collect();
        let (patches, expanded) = match sorted_scalars(&members) {
            Some(scalars) => (Cow::Borrowed(json), expand_scalars(&scalars)),
            None => expand_tree(json).map_err(|error| error.to_string())?,
        };
        let (values, not_variables) = match expanded {
            Ok(expanded) => expanded,
            Err(error) => return Ok(Self { name, members: Err(Box::new(error)), not_variables: 0 }),
        };
        let members = TextRange::push(written, &format!(",\"patches\":{patches},\"values\":{values}"))?;
        let not_variables = u32::try_from(not_variables).unwrap_or(u32::MAX);
        Ok(Self { name, members: Ok(members), not_variables })
    }

    /// Where the patches of a component are among those of a cluster, which are in the order of their names.
    pub(super) fn index_of(all: &[Self], name: &str) -> Option<usize> {
        all.binary_search_by(|patches| (*patches.name).cmp(name)).ok()
    }
}

/// Expands any patches; answers them too, without what is null.
fn expand_tree(json: &str) -> serde_json::Result<(Cow<'_, str>, Expanded)> {
    let mut patches: Map = serde_json::from_str(json)?;
    prune_nulls(&mut patches);
    let keys: Vec<_> = patches.keys().map(String::as_str).collect();
    let not_variables = no_variables(&keys).count();
    let expanded = match helm::expand(&patches) {
        Ok(values) => Ok((serde_json::to_string(&values)?, not_variables)),
        Err(error) => Err(error),
    };
    // Where no null was removed, the text is served as it was written.
    let has_null = json.contains("null");
    let patches = if has_null { Cow::Owned(serde_json::to_string(&patches)?) } else { Cow::Borrowed(json) };
    Ok((patches, expanded))
}

/// Patches whose keys need no escapes and whose values are scalars, in the order of their keys; none, if they are not like that.
///
/// Most are. Their values are copied and not parsed, so a number is served with the digits that its author wrote: parsed and
/// written again, `1.50` is `1.5`, and the last of 17 digits can change.
fn sorted_scalars<'a>(members: &'a [(Cow<'a, str>, &'a str)]) -> Option<Vec<(&'a str, &'a str)>> {
    // What had escapes is no longer borrowed.
    let is_plain = |key: &Cow<'_, str>| matches!(key, Cow::Borrowed(_));
    let is_text = |json: &str| json.starts_with('"') && !json.contains('\\');
    let is_whole = |json: &str| json.len() < 16 && json.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |json: &str| json.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    // A number other than a small whole one is copied only where no key is a path.
    let is_flat = || members.iter().all(|(key, _)| !key.is_empty() && !key.contains(['.', '[', ']']));
    let is_scalar = |(key, json): &(Cow<'_, str>, &str)| {
        let is_same = is_text(json) || ["true", "false"].contains(json) || is_whole(json);
        is_plain(key) && (is_same || (is_number(json) && is_flat()))
    };
    if !members.iter().all(is_scalar) {
        return None;
    }
    let mut sorted: Vec<_> = members.iter().map(|(key, value)| (&**key, *value)).collect();
    sorted.sort_unstable();
    let is_each_once = sorted.windows(2).all(|pair| pair[0].0 != pair[1].0);
    is_each_once.then_some(sorted)
}

fn expand_scalars(patches: &[(&str, &str)]) -> Expanded {
    let mut values = String::new();
    helm::write(patches.iter().copied(), &mut values)?;
    let keys: Vec<_> = patches.iter().map(|(key, _)| *key).collect();
    Ok((values, no_variables(&keys).count()))
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
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
