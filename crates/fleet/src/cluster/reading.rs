//! From the text of a document to a cluster, without a tree in between: a start reads every cluster of the fleet.
//!
//! Nearly all documents are read in one pass, each field as it comes. Where that fails, something is odd or wrong: a field is
//! there twice, or is not what it should be. Then each field is read by itself, so that the last of several counts, and what
//! is wrong is told of the field that is wrong.

mod cursor;
mod lists;
mod pass;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range, sync::Arc};

use model::{Document, Registry, ResourceType, Value, dns_spelling};
use serde::Deserialize;

use super::{Cluster, ENDING, Odd, Patches, patches::Said};
use crate::{
    Polls,
    catalogue::Version,
    merge::{Members, Name},
    slots::Place,
    snapshot::SnapshotError,
};

use lists::Lists;
use pass::Pass;

/// Knows what is named already.
pub(crate) trait Names {
    /// The place of a definition, or why it has none.
    fn place(&mut self, ty: &ResourceType, id: &str) -> Result<Place, String>;

    /// The place of a definition, if it has one.
    fn find(&self, ty: &ResourceType, id: &str) -> Option<Place>;

    /// The one copy of the name of something that is patched.
    fn patched(&mut self, name: &str) -> Arc<str>;
}

impl Cluster {
    /// Reads a document.
    pub(crate) fn read(
        document: &Document,
        registry: &Registry,
        names: &mut impl Names,
    ) -> Result<Self, SnapshotError> {
        let read = Parts::read(&document.body.text(), registry, names);
        let Parts { dns, ending, text, numbers, patches, odd } =
            read.map_err(|what| SnapshotError::unreadable(document, what))?;
        let is_odd = !odd.twice.is_empty() || !odd.unread_lists.is_empty();
        Ok(Self {
            document: document.packed(),
            polls: Polls::new(registry.types().count()),
            // Copied, since an allocator leaves what has shrunk where it is, with the room that it had to grow.
            text: text.as_str().into(),
            ending,
            dns,
            numbers: numbers.as_slice().into(),
            patches: patches.into(),
            odd: is_odd.then(|| Box::new(odd)),
            version: Version::new(),
        })
    }
}

/// What a cluster's text says.
#[derive(Debug)]
struct Parts {
    dns: Range<u32>,
    ending: u32,
    text: String,
    numbers: Vec<u32>,
    patches: Vec<Patches>,
    odd: Odd,
}

impl Parts {
    fn read(body: &str, registry: &Registry, names: &mut impl Names) -> Result<Self, String> {
        match Pass::over(body, registry, names) {
            Some(pass) => pass.into_parts(registry, names),
            None => Self::read_each(body, registry, names),
        }
    }

    /// Reads each field by itself.
    fn read_each(body: &str, registry: &Registry, names: &mut impl Names) -> Result<Self, String> {
        let Members(fields) = parse(body)?;
        let field = |name: &str| fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value.get());
        let string = |name: &str| match field(name) {
            Some(text) if text.starts_with('"') => Ok(text),
            _ => Err(format!("{name} is not a string")),
        };
        let mut identity = Identity::write(string("cluster_name")?, string("cluster_dns")?, string("environment")?)?;
        let patches = match field("patches") {
            None | Some("null") => Vec::new(),
            Some(patches) => {
                let Members(patches) = parse(patches)?;
                let patches = patches.into_iter().filter(|(_, one)| one.get() != "null");
                read_patches(patches.map(|(name, one)| Ok((name, Said::read(one.get())?))), &mut identity.text, names)?
            }
        };
        let mut lists = Lists::of(registry);
        for ty in registry.definitions() {
            match field(&ty.list) {
                None | Some("null") => {}
                Some(list) if list.starts_with('[') => lists.read(list, ty, names)?,
                Some(_) => return Err(format!("{} is not a list", ty.list)),
            }
        }
        let is_read = |name: &str| registry.definitions().any(|ty| ty.list == name);
        let unread = fields.iter().filter(|(name, value)| !is_read(name) && is_list_of_references(value.get()));
        let unread_lists = unread.map(|(name, _)| name.clone().into_owned()).collect();
        Self::of(identity, patches, lists, unread_lists, registry, names)
    }

    fn of(
        identity: Identity,
        patches: Vec<Placed>,
        lists: Lists,
        unread_lists: Vec<String>,
        registry: &Registry,
        names: &impl Names,
    ) -> Result<Self, String> {
        let Identity { mut text, ending, dns } = identity;
        let odd = Odd { twice: lists.twice(registry), unread_lists };
        let numbers = lists.write(&patches, registry, names, &mut text)?;
        // To collect them would take over the memory of the pairs, which is larger.
        let mut only = Vec::with_capacity(patches.len());
        only.extend(patches.into_iter().map(|(patches, _)| patches));
        Ok(Self { dns, ending, text, numbers, patches: only, odd })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn number(count: usize) -> Result<u32, String> {
    u32::try_from(count).map_err(|_| "the document is too large".to_owned())
}

/// The end of every input, with which a cluster's text begins, and the name under which it polls.
struct Identity {
    text: String,
    ending: u32,
    dns: Range<u32>,
}

impl Identity {
    /// Of the JSON of three strings.
    fn write(name: &str, dns: &str, environment: &str) -> Result<Self, String> {
        let mut text = String::with_capacity(ROOM);
        text.extend([ENDING, r#"{"name":"#, name, r#","dns":"#]);
        // Without its quotes.
        let said = text.len() + 1..text.len() + dns.len() - 1;
        text.extend([dns, r#","environment":"#, environment, "}}"]);
        let ending = number(text.len())?;
        let Name(dns) = parse(dns)?;
        let dns = dns_spelling(&dns);
        let dns = if text[said.clone()] == *dns {
            said
        } else {
            text.push_str(&dns);
            text.len() - dns.len()..text.len()
        };
        Ok(Self { text, ending, dns: number(dns.start)?..number(dns.end)? })
    }
}

/// More than most texts of clusters need: one that grows is copied each time.
const ROOM: usize = 2048;

/// Patches, and where in the text they are.
type Placed = (Patches, Range<u32>);

fn read_patches<'a>(
    all: impl Iterator<Item = Result<(Cow<'a, str>, Said<'a>), String>>,
    text: &mut String,
    names: &mut impl Names,
) -> Result<Vec<Placed>, String> {
    let mut patches = Vec::with_capacity(all.size_hint().0);
    for one in all {
        let (name, said) = one?;
        let start = number(text.len())?;
        let read = Patches::read(names.patched(&name), &said, text)?;
        patches.push((read, start..number(text.len())?));
    }
    // Of several of one name the last one is found.
    patches.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(patches)
}

fn is_list_of_references(text: &str) -> bool {
    let is_reference = |item: &Value| item.get("id").is_some();
    text.starts_with('[')
        && parse::<Vec<Value>>(text).is_ok_and(|items| !items.is_empty() && items.iter().all(is_reference))
}
