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

use super::{
    Cluster, ENDING, Facts, Odd, OtherNames, Patches,
    dns::{FORMER, RELEASED, dns_names, released_names},
    patches::Said,
};
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
        polls: Polls,
    ) -> Result<Self, SnapshotError> {
        let parts = Parts::read(&document.body.text(), registry, names);
        let cluster = parts.and_then(|parts| parts.into_cluster(document, polls));
        cluster.map_err(|what| SnapshotError::unreadable(document, what))
    }
}

/// What a cluster's text says.
#[derive(Debug)]
struct Parts {
    identity: Identity,
    other_names: OtherNames,
    /// Its lists of references, as they are kept.
    lists: String,
    /// What the references say, and what the patches come to.
    said: String,
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
        let identity = Identity::write(string("cluster_name")?, string("cluster_dns")?, string("environment")?)?;
        let former = field(FORMER).map_or(Ok(Vec::new()), |text| dns_names(FORMER, text))?;
        let released = field(RELEASED).map_or(Ok(Vec::new()), released_names)?;
        let other_names = OtherNames { former, released };
        let patched = match field("patches") {
            None | Some("null") => Patched::default(),
            Some(patches) => {
                let Members(patches) = parse(patches)?;
                let patches = patches.into_iter().filter(|(_, one)| one.get() != "null");
                Patched::read(patches.map(|(name, one)| Ok((name, Said::read(one.get())?))), names)?
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
        Self::of(identity, other_names, patched, lists, unread_lists, registry, names)
    }

    fn of(
        identity: Identity,
        other_names: OtherNames,
        patched: Patched,
        lists: Lists,
        unread_lists: Vec<String>,
        registry: &Registry,
        names: &impl Names,
    ) -> Result<Self, String> {
        let odd = Odd { twice: lists.twice(registry), unread_lists };
        let Patched { all, text: mut said } = patched;
        let lists = lists.write(&all, registry, names, &mut said)?;
        // To collect them would take over the memory of the pairs, which is larger.
        let mut patches = Vec::with_capacity(all.len());
        patches.extend(all.into_iter().map(|(patches, _)| patches));
        Ok(Self { identity, other_names, lists, said, patches, odd })
    }

    fn into_cluster(self, document: &Document, polls: Polls) -> Result<Cluster, String> {
        let number = |at: usize| u32::try_from(at).map_err(|_| "the document is too large".to_owned());
        let range = |range: Range<usize>| Ok::<_, String>(number(range.start)?..number(range.end)?);
        let Self { identity: Identity { mut text, ending, dns }, other_names, lists, said, patches, odd } = self;
        let start = text.len();
        text.extend([&*lists, &*said]);
        let has_other_names = !other_names.former.is_empty() || !other_names.released.is_empty();
        let is_odd = !odd.twice.is_empty() || !odd.unread_lists.is_empty();
        let facts = Facts {
            document: document.packed(),
            polls,
            ending: number(ending)?,
            lists: range(start..start + lists.len())?,
            dns: range(dns)?,
            other_names: has_other_names.then(|| Box::new(other_names)),
            patches: patches.into(),
            odd: is_odd.then(|| Box::new(odd)),
            version: Version::new(),
        };
        Ok(Cluster::new(facts, &text))
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The end of every input, with which a cluster's text begins, and the name under which it polls.
#[derive(Debug)]
struct Identity {
    text: String,
    ending: usize,
    dns: Range<usize>,
}

impl Identity {
    /// Of the JSON of three strings.
    fn write(name: &str, dns: &str, environment: &str) -> Result<Self, String> {
        let mut text = String::with_capacity(ROOM);
        text.extend([ENDING, r#"{"name":"#, name, r#","dns":"#]);
        // Without its quotes.
        let said = text.len() + 1..text.len() + dns.len() - 1;
        text.extend([dns, r#","environment":"#, environment, "}}"]);
        let ending = text.len();
        let Name(dns) = parse(dns)?;
        let dns = dns_spelling(&dns);
        let dns = if text[said.clone()] == *dns {
            said
        } else {
            text.push_str(&dns);
            text.len() - dns.len()..text.len()
        };
        Ok(Self { text, ending, dns })
    }
}

/// More than most clusters say: a text that grows is copied each time.
const ROOM: usize = 2048;

/// Patches, and where in the text they are.
type Placed = (Patches, Range<usize>);

/// All patches, in the order of their names, and the text of what they come to.
#[derive(Default)]
struct Patched {
    all: Vec<Placed>,
    text: String,
}

impl Patched {
    fn read<'a>(
        patches: impl Iterator<Item = Result<(Cow<'a, str>, Said<'a>), String>>,
        names: &mut impl Names,
    ) -> Result<Self, String> {
        let mut text = String::with_capacity(ROOM);
        let mut all = Vec::with_capacity(patches.size_hint().0);
        for one in patches {
            let (name, said) = one?;
            let start = text.len();
            let read = Patches::read(names.patched(&name), &said, &mut text)?;
            all.push((read, start..text.len()));
        }
        // Of several of one name the last one counts.
        all.reverse();
        all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        all.dedup_by(|(later, _), (first, _)| later.name == first.name);
        Ok(Self { all, text })
    }
}

fn is_list_of_references(text: &str) -> bool {
    let is_reference = |item: &Value| item.get("id").is_some();
    text.starts_with('[')
        && parse::<Vec<Value>>(text).is_ok_and(|items| !items.is_empty() && items.iter().all(is_reference))
}
