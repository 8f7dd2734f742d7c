//! From the text of a document to a cluster, without a tree in between: a start reads every cluster of the fleet.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use model::{Document, Map, Registry, ResourceType, Value, dns_spelling, prune_nulls};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{Cluster, ENDING, Mark, Odd, Patches, What};
use crate::{
    Polls,
    catalogue::Version,
    merge::{Members, Name},
    slots::Place,
    snapshot::SnapshotError,
};

/// Knows what is named already.
pub(crate) trait Names {
    /// The place of a definition, or why it has none.
    fn place(&mut self, ty: &ResourceType, id: &str) -> Result<Place, String>;

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
            document: document.clone(),
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
        let Members(fields) = parse(body)?;
        let field = |name: &str| fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value.get());
        let string = |name: &str| match field(name) {
            Some(text) if text.starts_with('"') => Ok(text),
            _ => Err(format!("{name} is not a string")),
        };
        let (name, dns, environment) = (string("cluster_name")?, string("cluster_dns")?, string("environment")?);
        let mut text = format!(r#"{ENDING}{{"name":{name},"dns":"#);
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
        let dns = number(dns.start)?..number(dns.end)?;
        let patches = match field("patches") {
            None | Some("null") => Vec::new(),
            Some(patches) => read_patches(patches, &mut text, names)?,
        };
        let mut lists = Lists { text, numbers: Vec::new(), marks: Vec::new(), twice: Vec::new() };
        lists.begin(registry.types().count())?;
        for ty in registry.types() {
            match field(&ty.list) {
                _ if ty.is_cluster() => {}
                None | Some("null") => {}
                Some(list) if list.starts_with('[') => lists.read(list, ty, &patches, names)?,
                Some(_) => return Err(format!("{} is not a list", ty.list)),
            }
            lists.end(ty)?;
        }
        let is_read = |name: &str| registry.definitions().any(|ty| ty.list == name);
        let unread = fields.iter().filter(|(name, value)| !is_read(name) && is_list_of_references(value.get()));
        let unread_lists = unread.map(|(name, _)| name.clone().into_owned()).collect();
        let Lists { text, mut numbers, marks, twice } = lists;
        numbers.extend(marks.into_iter().flat_map(Mark::write));
        // To collect them would take over the memory of the pairs, which is larger.
        let mut only = Vec::with_capacity(patches.len());
        only.extend(patches.into_iter().map(|(patches, _)| patches));
        Ok(Self { dns, ending, text, numbers, patches: only, odd: Odd { twice, unread_lists } })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Patches, and where in the text they are.
type Placed = (Patches, Range<u32>);

fn read_patches(of: &str, text: &mut String, names: &mut impl Names) -> Result<Vec<Placed>, String> {
    let Members(all) = parse(of)?;
    let mut patches = Vec::with_capacity(all.len());
    for (name, one) in all.iter().filter(|(_, one)| one.get() != "null") {
        let start = number(text.len())?;
        let read = Patches::read(names.patched(name), one.get(), text)?;
        patches.push((read, start..number(text.len())?));
    }
    patches.sort_unstable_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(patches)
}

fn number(count: usize) -> Result<u32, String> {
    u32::try_from(count).map_err(|_| "the document is too large".to_owned())
}

/// The lists of all types, one after the other.
struct Lists {
    text: String,
    numbers: Vec<Place>,
    marks: Vec<Mark>,
    twice: Vec<(usize, Place)>,
}

impl Lists {
    fn read(
        &mut self,
        text: &str,
        ty: &ResourceType,
        patches: &[Placed],
        names: &mut impl Names,
    ) -> Result<(), String> {
        let start = self.numbers.len();
        let list = Entries { lists: self, ty, patches, names };
        let mut text = serde_json::Deserializer::from_str(text);
        text.deserialize_seq(list).and_then(|()| text.end()).map_err(|error| error.to_string())?;
        let mut sorted = self.numbers[start..].to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        self.twice.extend(twice.map(|pair| (ty.position, pair[0])));
        Ok(())
    }

    /// Takes a reference.
    fn push(
        &mut self,
        Entry { id, said }: Entry<'_>,
        ty: &ResourceType,
        patches: &[Placed],
        names: &mut impl Names,
    ) -> Result<(), String> {
        let at = number(self.numbers.len())?;
        let id = id.ok_or("a reference has no id")?;
        self.numbers.push(names.place(ty, &id)?);
        if !said.is_empty() {
            let what = What::Said { enabled: said.get("enabled") != Some(&Value::Bool(false)) };
            let start = number(self.text.len())?;
            self.text.push_str(&Value::Object(said).to_string());
            self.marks.push(Mark { at, what, start, end: number(self.text.len())? });
        }
        if ty.patchable
            && let Ok(found) = patches.binary_search_by(|(patches, _)| (*patches.name).cmp(&id))
        {
            let Range { start, end } = patches[found].1;
            self.marks.push(Mark { at, what: What::Patched, start, end });
        }
        Ok(())
    }

    /// Leaves room for where lists begin, and where the last one ends.
    fn begin(&mut self, types: usize) -> Result<(), String> {
        self.numbers.resize(types + 1, number(types + 1)?);
        Ok(())
    }

    /// Ends the list of a type.
    fn end(&mut self, ty: &ResourceType) -> Result<(), String> {
        self.numbers[ty.position + 1] = number(self.numbers.len())?;
        Ok(())
    }
}

/// A list of references, each of which is taken as it is read.
struct Entries<'a, N> {
    lists: &'a mut Lists,
    ty: &'a ResourceType,
    patches: &'a [Placed],
    names: &'a mut N,
}

impl<'de, N: Names> Visitor<'de> for Entries<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { lists, ty, patches, names } = self;
        while let Some(entry) = list.next_element_seed(Object(ty))? {
            lists.push(entry, ty, patches, names).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// An entry of a list of references: its id, and what else it says that makes a difference.
struct Entry<'a> {
    id: Option<Cow<'a, str>>,
    said: Map,
}

struct Object<'a>(&'a ResourceType);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = Entry<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entry = Entry { id: None, said: Map::new() };
        while let Some(Name(name)) = map.next_key()? {
            if name == "id" {
                entry.id = Some(map.next_value::<Name<'_>>()?.0);
                continue;
            }
            let value: Value = map.next_value()?;
            if !self.0.is_default(&name, &value) {
                entry.said.insert(name.into_owned(), value);
            }
        }
        prune_nulls(&mut entry.said);
        Ok(entry)
    }
}

fn is_list_of_references(text: &str) -> bool {
    let is_reference = |item: &Value| item.get("id").is_some();
    text.starts_with('[')
        && parse::<Vec<Value>>(text).is_ok_and(|items| !items.is_empty() && items.iter().all(is_reference))
}
