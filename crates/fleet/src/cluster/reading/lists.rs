//! Lists of references, as they come: places of definitions, and what a reference says beside an id.

use std::{borrow::Cow, fmt, ops::Range};

use model::{Map, Registry, ResourceType, Value, prune_nulls};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{Names, Placed};
use crate::{
    cluster::references::{Reference, Written},
    merge::Name,
    slots::Place,
};

/// The lists of all types, one after the other as they were read.
pub(super) struct Lists {
    places: Vec<Place>,
    /// What references say, and at which of the places.
    said: Vec<(usize, Map)>,
    /// Where the list of each type is, by its position; none that was not read.
    of_types: Vec<Option<Range<usize>>>,
}

/// More references than most clusters have.
const MANY: usize = 64;

impl Lists {
    /// None yet.
    pub(super) fn of(registry: &Registry) -> Self {
        let of_types = registry.types().map(|_| None).collect();
        Self { places: Vec::with_capacity(MANY), said: Vec::new(), of_types }
    }

    /// Whether the list of a type was read.
    pub(super) fn has(&self, ty: &ResourceType) -> bool {
        self.of_types[ty.position].is_some()
    }

    /// Reads the list of a type.
    pub(super) fn read(&mut self, text: &str, ty: &ResourceType, names: &mut impl Names) -> Result<(), String> {
        let mut text = serde_json::Deserializer::from_str(text);
        let list = Entries { lists: self, ty, names }.deserialize(&mut text);
        list.and_then(|()| text.end()).map_err(|error| error.to_string())
    }

    /// Begins the list of a type, ends it and, in between, takes a reference.
    pub(super) fn begin(&mut self, ty: &ResourceType) {
        self.of_types[ty.position] = Some(self.places.len()..self.places.len());
    }

    pub(super) fn end(&mut self, ty: &ResourceType) {
        if let Some(list) = &mut self.of_types[ty.position] {
            list.end = self.places.len();
        }
    }

    pub(super) fn push(&mut self, place: Place, said: Option<Map>) {
        if let Some(mut said) = said {
            prune_nulls(&mut said);
            if !said.is_empty() {
                self.said.push((self.places.len(), said));
            }
        }
        self.places.push(place);
    }

    fn list(&self, ty: &ResourceType) -> Range<usize> {
        self.of_types[ty.position].clone().unwrap_or_default()
    }

    /// Definitions that a list names twice, with the position of the type: one for each list.
    pub(super) fn twice(&self, registry: &Registry) -> Vec<(usize, Place)> {
        let mut twice = Vec::new();
        for ty in registry.definitions() {
            let list = &self.places[self.list(ty)];
            if !are_different(list) {
                let mut sorted = list.to_vec();
                sorted.sort_unstable();
                let pair = sorted.windows(2).find(|pair| pair[0] == pair[1]);
                twice.extend(pair.map(|pair| (ty.position, pair[0])));
            }
        }
        twice
    }

    /// Writes the lists as they are kept, in the order of the types, and what references say to the end of all that is said.
    pub(super) fn write(
        self,
        patches: &[Placed],
        registry: &Registry,
        names: &impl Names,
        text: &mut String,
    ) -> Result<String, String> {
        let mut lists = Written::with_capacity(2 * MANY);
        for ty in registry.types() {
            let list = self.list(ty);
            let patched = if ty.patchable { patched(patches, ty, names) } else { Vec::new() };
            let first = self.said.partition_point(|(at, _)| *at < list.start);
            let mut said = self.said[first..].iter().peekable();
            lists.begin();
            for (at, place) in list.clone().zip(&self.places[list]) {
                let said = match said.next_if(|(said, _)| *said == at) {
                    None => None,
                    Some((_, said)) => {
                        let enabled = said.get("enabled") != Some(&Value::Bool(false));
                        let start = text.len();
                        text.push_str(&serde_json::to_string(said).map_err(|error| error.to_string())?);
                        Some((enabled, start..text.len()))
                    }
                };
                let found = patched.binary_search_by_key(place, |(place, _)| *place).ok();
                let patched = found.map(|found| patched[found].1.clone());
                lists.push(Reference { place: *place, said, patched });
            }
        }
        lists.into_text().map_err(|error| error.to_string())
    }
}

/// Whether no two places are the same, as far as that is seen at once: of places below 256, which is where most are.
fn are_different(list: &[Place]) -> bool {
    let mut seen = [0_u64; 4];
    list.iter().all(|place| {
        let bit = 1 << (place % 64);
        let word = seen.get_mut(*place as usize / 64);
        word.is_some_and(|word| {
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        })
    })
}

/// Where in the text the patches are of what a type defines, in the order of places. Of several of one name the last one
/// counts.
fn patched(patches: &[Placed], ty: &ResourceType, names: &impl Names) -> Vec<(Place, Range<usize>)> {
    let places = patches.iter().rev().filter_map(|(one, text)| Some((names.find(ty, &one.name)?, text.clone())));
    let mut places: Vec<_> = places.collect();
    places.sort_by_key(|(place, _)| *place);
    places.dedup_by_key(|(place, _)| *place);
    places
}

/// The list of a type, of which each reference is taken as it is read.
struct Entries<'a, N> {
    lists: &'a mut Lists,
    ty: &'a ResourceType,
    names: &'a mut N,
}

impl<'de, N: Names> DeserializeSeed<'de> for Entries<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, N: Names> Visitor<'de> for Entries<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { lists, ty, names } = self;
        lists.begin(ty);
        while let Some(Entry { id, said }) = list.next_element_seed(Object(ty))? {
            let id = id.ok_or_else(|| A::Error::custom("a reference has no id"))?;
            let place = names.place(ty, &id).map_err(A::Error::custom)?;
            lists.push(place, said);
        }
        lists.end(ty);
        Ok(())
    }
}

/// An entry of a list of references: its id, and what else it says that makes a difference.
struct Entry<'a> {
    id: Option<Cow<'a, str>>,
    said: Option<Map>,
}

/// Notes a field of a reference, if it makes a difference. A null says nothing, and takes back what the same field said before
/// it; so a reference with nothing but nulls beside its id costs no more than one with its id alone.
pub(super) fn note_field(said: &mut Option<Map>, ty: &ResourceType, name: Cow<'_, str>, value: Value) {
    if value.is_null() {
        if let Some(said) = said {
            said.shift_remove(&*name);
        }
    } else if !ty.is_default(&name, &value) {
        said.get_or_insert_default().insert(name.into_owned(), value);
    }
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
        let mut entry = Entry { id: None, said: None };
        while let Some(Name(name)) = map.next_key()? {
            if name == "id" {
                entry.id = Some(map.next_value::<Name<'_>>()?.0);
                continue;
            }
            note_field(&mut entry.said, self.0, name, map.next_value()?);
        }
        Ok(entry)
    }
}
