//! From the text of a document to a cluster, without a tree of JSON in between: a start reads every cluster of the fleet.
//!
//! Each field is read by itself. Where a document has a field twice, the last one counts; an error names the field.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use model::{Document, Registry, ResourceType, Value, dns_spelling};
use serde::Deserialize;

use super::{
    Cluster, ClusterData, ENDING, Irregularities, OtherNames, Patches, TextRange,
    dns::{FORMER, RELEASED, dns_names, released_names},
    references::{duplicate, read_list},
};
use crate::{
    Polls,
    catalogue::Version,
    merge::{Members, Name},
    slots::Slot,
    snapshot::SnapshotError,
};

/// The names that a snapshot knows already.
pub(crate) trait NameIndex {
    /// The slot of a definition, or why it has none.
    fn slot(&mut self, ty: &ResourceType, id: &str) -> Result<Slot, String>;

    /// The shared copy of the name of a component that is patched.
    fn shared_name(&mut self, name: &str) -> Arc<str>;
}

impl Cluster {
    /// Reads a document.
    pub(crate) fn read(
        document: &Document,
        registry: &Registry,
        names: &mut impl NameIndex,
        polls: Polls,
    ) -> Result<Self, SnapshotError> {
        let cluster = read(document, registry, names, polls);
        cluster.map_err(|what| SnapshotError::unreadable(document, what))
    }
}

fn read(document: &Document, registry: &Registry, names: &mut impl NameIndex, polls: Polls) -> Result<Cluster, String> {
    let body = document.body.text();
    let Members(fields) = parse(&body)?;
    let field = |name: &str| fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value.get());
    let string = |name: &str| match field(name) {
        // Decoded too: JSON of a text that cannot be decoded, such as half a surrogate pair, would be served as it is.
        Some(text) if text.starts_with('"') => Ok((text, parse::<Name<'_>>(text)?.0)),
        _ => Err(format!("{name} is not a string")),
    };
    let ((name, _), (dns_json, dns), (environment, _)) =
        (string("cluster_name")?, string("cluster_dns")?, string("environment")?);
    let ending = format!("{ENDING}{{\"name\":{name},\"dns\":{dns_json},\"environment\":{environment}}}}}");
    let mut text = String::with_capacity(USUAL);
    let ending = TextRange::push(&mut text, &ending)?;
    let other_names = OtherNames {
        former: field(FORMER).map_or(Ok(Vec::new()), |text| dns_names(FORMER, text))?,
        released: field(RELEASED).map_or(Ok(Vec::new()), released_names)?,
    };
    let patches = match field("patches") {
        None | Some("null") => Box::default(),
        Some(patches) => read_patches(patches, names, &mut text)?,
    };
    let mut lists: Box<[_]> = registry.types().map(|_| Box::default()).collect();
    let mut duplicates = Vec::new();
    for ty in registry.definitions() {
        let list = match field(&ty.list) {
            None | Some("null") => continue,
            Some(list) if list.starts_with('[') => read_list(list, ty, &patches, names, &mut text)?,
            Some(_) => return Err(format!("{} is not a list", ty.list)),
        };
        duplicates.extend(duplicate(&list).map(|slot| (ty.position, slot)));
        lists[ty.position] = list;
    }
    let is_read = |name: &str| registry.definitions().any(|ty| ty.list == name);
    let unread = fields.iter().filter(|(name, value)| !is_read(name) && is_list_of_references(value.get()));
    let unread_lists: Vec<_> = unread.map(|(name, _)| name.clone().into_owned()).collect();
    let has_other_names = !other_names.former.is_empty() || !other_names.released.is_empty();
    let is_irregular = !duplicates.is_empty() || !unread_lists.is_empty();
    Ok(Cluster(Arc::new(ClusterData {
        document: document.packed(),
        polls,
        // Copied: a text that shrinks may stay in its larger block of memory.
        text: text.as_str().into(),
        ending,
        dns: dns_spelling(&dns).into(),
        other_names: has_other_names.then(|| Box::new(other_names)),
        lists,
        patches,
        irregularities: is_irregular.then(|| Box::new(Irregularities { duplicates, unread_lists })),
        version: Version::new(),
    })))
}

/// Items in a block of memory of just their size: a vector that shrinks may stay in its larger one.
pub(super) fn exact<T>(items: Vec<T>) -> Box<[T]> {
    let mut exact = Vec::with_capacity(items.len());
    exact.extend(items);
    exact.into()
}

/// More bytes of text than most clusters have.
const USUAL: usize = 2048;

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// All patches of a cluster, in the order of the names of what they patch. Of several of one name the last one counts.
fn read_patches(json: &str, names: &mut impl NameIndex, written: &mut String) -> Result<Box<[Patches]>, String> {
    let Members(components) = parse(json)?;
    let components = components.into_iter().filter(|(_, patches)| patches.get() != "null");
    let patches = components.map(|(name, patches)| Patches::read(names.shared_name(&name), patches.get(), written));
    let mut patches = patches.collect::<Result<Vec<_>, _>>()?;
    patches.reverse();
    patches.sort_by(|one, other| one.name.cmp(&other.name));
    patches.dedup_by(|later, first| later.name == first.name);
    Ok(exact(patches))
}

fn is_list_of_references(text: &str) -> bool {
    let is_reference = |item: &Value| item.get("id").is_some();
    text.starts_with('[')
        && parse::<Vec<Value>>(text).is_ok_and(|items| !items.is_empty() && items.iter().all(is_reference))
}
