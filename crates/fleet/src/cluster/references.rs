//! The references of a cluster: what its lists name, and what it sets for each.
//!
//! A reference holds the slot of its definition, so a poll compares no names. What it sets is text of the cluster.

use std::{borrow::Cow, fmt};

use model::{Map, ResourceType, Value, prune_nulls};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{NameIndex, Patches, TextRange, reading::exact};
use crate::{merge::Name, slots::Slot};

/// An entry of one of a cluster's lists.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The slot of the definition in the catalogue of the list's type.
    pub(crate) slot: Slot,
    /// Whether the cluster wants what the definition describes.
    pub(crate) enabled: bool,
    /// Where in the cluster's text the fields of the reference are that are not null and differ from the type's defaults, as a
    /// JSON object. Empty, if there are none, which is so for nearly all references.
    pub(super) fields: TextRange,
    /// Which of the cluster's patches apply.
    pub(super) patches: Option<u32>,
}

/// Reads a cluster's list of references to definitions of a type. What they set is added to the cluster's text.
pub(super) fn read_list(
    text: &str,
    ty: &ResourceType,
    patches: &[Patches],
    names: &mut impl NameIndex,
    written: &mut String,
) -> Result<Box<[Reference]>, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let list = ListReader { ty, patches, names, written }.deserialize(&mut json);
    let list = list.and_then(|list| json.end().map(|()| list)).map_err(|error| error.to_string())?;
    Ok(exact(list))
}

/// The lowest slot that a list has more than once.
pub(super) fn duplicate(list: &[Reference]) -> Option<Slot> {
    let mut slots: Vec<_> = list.iter().map(|reference| reference.slot).collect();
    slots.sort_unstable();
    slots.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Reads a list. No tree of JSON is built: a start reads the lists of the whole fleet.
struct ListReader<'a, N> {
    ty: &'a ResourceType,
    patches: &'a [Patches],
    names: &'a mut N,
    written: &'a mut String,
}

impl<N: NameIndex> ListReader<'_, N> {
    fn reference(&mut self, Entry { id, fields }: Entry<'_>) -> Result<Reference, String> {
        let id = id.ok_or("a reference has no id")?;
        let slot = self.names.slot(self.ty, &id)?;
        let mut fields = fields.unwrap_or_default();
        prune_nulls(&mut fields);
        let enabled = fields.get("enabled") != Some(&Value::Bool(false));
        let fields = if fields.is_empty() {
            TextRange::default()
        } else {
            let text = serde_json::to_string(&fields).map_err(|error| error.to_string())?;
            TextRange::push(self.written, &text)?
        };
        let patches = if self.ty.patchable { Patches::index_of(self.patches, &id) } else { None };
        let patches = patches.map(u32::try_from).transpose().map_err(|error| error.to_string())?;
        Ok(Reference { slot, enabled, fields, patches })
    }
}

impl<'de, N: NameIndex> DeserializeSeed<'de> for ListReader<'_, N> {
    type Value = Vec<Reference>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, N: NameIndex> Visitor<'de> for ListReader<'_, N> {
    type Value = Vec<Reference>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut references = Vec::new();
        while let Some(entry) = list.next_element_seed(EntryReader(self.ty))? {
            references.push(self.reference(entry).map_err(A::Error::custom)?);
        }
        Ok(references)
    }
}

/// An entry of a list: its id, and its other fields that make a difference.
struct Entry<'a> {
    id: Option<Cow<'a, str>>,
    fields: Option<Map>,
}

struct EntryReader<'a>(&'a ResourceType);

impl<'de> DeserializeSeed<'de> for EntryReader<'_> {
    type Value = Entry<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntryReader<'_> {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entry = Entry { id: None, fields: None };
        while let Some(Name(name)) = map.next_key()? {
            if name == "id" {
                entry.id = Some(map.next_value::<Name<'_>>()?.0);
                continue;
            }
            let value: Value = map.next_value()?;
            // A null sets nothing, and takes back what the same field set before it. A default makes no difference.
            if value.is_null() {
                if let Some(fields) = &mut entry.fields {
                    fields.shift_remove(&*name);
                }
            } else if !self.0.is_default(&name, &value) {
                entry.fields.get_or_insert_default().insert(name.into_owned(), value);
            }
        }
        Ok(entry)
    }
}
