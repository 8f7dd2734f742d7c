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
    /// How many are no free names of variables, which patches of an OCI artifact must be. None, where they have no meaning.
    pub(crate) not_variables: u32,
    /// Why they have no meaning, if they have none.
    pub(crate) refused: Option<Box<PatchError>>,
}

/// What a document says of one component.
pub(super) struct Said<'a> {
    /// As JSON.
    pub(super) text: &'a str,
    /// The same: each name, and its value as JSON.
    pub(super) members: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Said<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let Members(members) = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self { text, members: members.into_iter().map(|(name, value)| (name, value.get())).collect() })
    }
}

impl Patches {
    /// Adds to a cluster's text what patches come to, as more members of a JSON object: nothing, if they have no meaning.
    pub(super) fn read(name: Arc<str>, said: &Said<'_>, text: &mut String) -> Result<Self, String> {
        let (not_variables, refused) = match Plain::of(&said.members) {
            Some(plain) => plain.write(said.text, text),
            None => write_tree(said.text, text).map_err(|error| error.to_string())?,
        };
        Ok(Self { name, not_variables, refused })
    }
}

/// Writes any patches; says how many are no free names of variables, and why they have no meaning, if they have none.
fn write_tree(patches: &str, text: &mut String) -> serde_json::Result<(u32, Option<Box<PatchError>>)> {
    let mut tree: Map = serde_json::from_str(patches)?;
    prune_nulls(&mut tree);
    let keys: Vec<_> = tree.keys().map(String::as_str).collect();
    let not_variables = count_no_variables(&keys);
    let values = match helm::expand(&tree) {
        Ok(values) => serde_json::to_string(&values)?,
        Err(error) => return Ok((0, Some(Box::new(error)))),
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
    Ok((not_variables, None))
}

/// Patches whose keys need no escapes and whose values are scalars, which most are, in the order of their keys. A start reads
/// those of a whole fleet, so no tree of JSON is built of them.
struct Plain<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Plain<'a> {
    fn of(members: &'a [(Cow<'a, str>, &'a str)]) -> Option<Self> {
        // What had escapes is no longer borrowed.
        let is_plain = |key: &Cow<'_, str>| matches!(key, Cow::Borrowed(_));
        let is_text = |json: &str| json.starts_with('"') && !json.as_bytes().contains(&b'\\');
        let is_whole = |json: &str| json.len() < 16 && json.bytes().all(|byte| byte.is_ascii_digit());
        // In a tree any other number is written as it is read; without paths, all are written as they are said.
        let is_number = |json: &str| json.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let is_flat = || members.iter().all(|(key, _)| !key.is_empty() && !key.contains(['.', '[', ']']));
        let good = |(key, json): &(Cow<'_, str>, &str)| {
            let is_same = is_text(json) || ["true", "false"].contains(json) || is_whole(json);
            is_plain(key) && (is_same || (is_number(json) && is_flat()))
        };
        if !members.iter().all(good) {
            return None;
        }
        let mut all: Vec<_> = members.iter().map(|(key, value)| (&**key, *value)).collect();
        all.sort_unstable();
        let once = all.windows(2).all(|pair| pair[0].0 != pair[1].0);
        once.then_some(Self(all))
    }

    /// Writes them; says how many are no free names of variables, and why they have no meaning, if they have none.
    fn write(&self, patches: &str, text: &mut String) -> (u32, Option<Box<PatchError>>) {
        let start = text.len();
        text.push_str(",\"patches\":");
        text.push_str(patches);
        text.push_str(",\"values\":");
        if let Err(error) = helm::write(self.0.iter().copied(), text) {
            text.truncate(start);
            return (0, Some(Box::new(error)));
        }
        let keys: Vec<_> = self.0.iter().map(|(key, _)| *key).collect();
        (count_no_variables(&keys), None)
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

fn count_no_variables(keys: &[&str]) -> u32 {
    u32::try_from(no_variables(keys).count()).unwrap_or(u32::MAX)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
