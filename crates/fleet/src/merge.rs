//! The one rule by which several sources become an input.
//!
//! Sources are an ordered list, the weakest first; a field of a stronger source hides the same field of a weaker one. Today
//! there are three: the type's defaults, the definition, and the cluster's reference. Nothing here knows a type by name, and
//! nothing depends on how many sources there are.
//!
//! Fields are JSON text from the moment their document is read: a poll copies them and parses none of them.

use std::{borrow::Cow, fmt};

use model::{Id, Map, Nest, ResourceType, Value};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A field of a source.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: Cow<'a, str>,
    /// As JSON. A null of a document is no field.
    pub(crate) value: Cow<'a, str>,
}

/// A place that values can come from: the fields that it sets, each once.
pub(crate) type Source<'a> = &'a [Field<'a>];

/// A field of an input: its value, and the source that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merged<'a> {
    pub(crate) name: &'a str,
    /// As JSON.
    pub(crate) value: &'a str,
    /// The index of the source that won. Of the sources before it, those that have the field lost.
    pub(crate) source: usize,
}

/// Merges sources, the weakest first. Fields are in the order in which the sources first name them.
pub(crate) fn merge<'a>(sources: &[Source<'a>]) -> Vec<Merged<'a>> {
    let mut merged: Vec<Merged<'a>> = Vec::with_capacity(sources.iter().map(|fields| fields.len()).sum());
    for (source, fields) in sources.iter().enumerate() {
        for Field { name, value } in *fields {
            let new = Merged { name, value, source };
            match merged.iter_mut().find(|known| known.name == name) {
                Some(weaker) => *weaker = new,
                None => merged.push(new),
            }
        }
    }
    merged
}

/// The values of a field in sources that lost to the one that won, the strongest first, each with the index of its source.
pub(crate) fn hidden<'a>(
    sources: &[Source<'a>],
    winner: &Merged<'a>,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let name = winner.name;
    let weaker: Vec<_> = sources.iter().copied().enumerate().take(winner.source).rev().collect();
    weaker.into_iter().filter_map(move |(source, fields)| Some((source, value_of(fields, name)?)))
}

fn value_of<'a>(fields: Source<'a>, name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.name == name).map(|field| &*field.value)
}

/// Where an input has its merged fields: some in itself, the others in objects that the type declares.
pub(crate) struct Layout<'a> {
    ty: &'a ResourceType,
    merged: &'a [Merged<'a>],
}

impl<'a> Layout<'a> {
    pub(crate) fn new(ty: &'a ResourceType, merged: &'a [Merged<'a>]) -> Self {
        Self { ty, merged }
    }

    /// The fields in the input itself. A field of the same name as a nested object is left out: it would be taken for that
    /// object.
    pub(crate) fn outside(&self) -> impl Iterator<Item = &'a Merged<'a>> {
        let nests = &self.ty.nests;
        let is_nested =
            |name: &str| nests.iter().any(|nest| nest.name == name || nest.fields.iter().any(|it| it == name));
        self.merged.iter().filter(move |field| !is_nested(field.name))
    }

    /// The fields in a nested object, in the order in which the type declares them.
    pub(crate) fn inside(&self, nest: &'a Nest) -> impl Iterator<Item = &'a Merged<'a>> {
        let merged = self.merged;
        nest.fields.iter().filter_map(move |name| merged.iter().find(|field| field.name == name))
    }

    /// Writes the input as the members of a JSON object.
    pub(crate) fn write(&self, id: &Id, text: &mut String) {
        text.push_str("\"id\":");
        push_string(text, id.as_str());
        for field in self.outside() {
            text.push(',');
            push_member(text, field);
        }
        for nest in &self.ty.nests {
            text.push(',');
            push_string(text, &nest.name);
            text.push_str(":{");
            for (at, field) in self.inside(nest).enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                push_member(text, field);
            }
            text.push('}');
        }
    }
}

fn push_member(text: &mut String, field: &Merged<'_>) {
    push_string(text, field.name);
    text.push(':');
    text.push_str(field.value);
}

/// Writes a string as JSON.
fn push_string(text: &mut String, string: &str) {
    if string.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' ')) {
        text.push_str(&Value::from(string).to_string());
    } else {
        text.extend(["\"", string, "\""]);
    }
}

/// The fields of a source, from a tree without nulls.
pub(crate) fn fields_of(fields: &Map) -> Box<[Field<'static>]> {
    let field = |(name, value): (&String, &Value)| Field { name: name.clone().into(), value: value.to_string().into() };
    fields.iter().map(field).collect()
}

/// The fields of a source, from the text of an object that has each name once.
pub(crate) fn read_fields(json: &str) -> serde_json::Result<Vec<Field<'_>>> {
    let Members(members) = serde_json::from_str(json)?;
    Ok(members.into_iter().map(|(name, value)| Field { name, value: value.get().into() }).collect())
}

/// The members of an object, each with the text of its value.
#[derive(Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A name that is text of the document, unless it had to be unescaped.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::subsequence};

    use super::*;

    proptest! {
        #[test]
        fn the_strongest_source_that_has_a_field_wins_however_many_there_are(
            names in vec(subsequence(vec!["a", "b", "c", "d"], 0..=4).prop_shuffle(), 0..5),
        ) {
            let field = |source: usize, name: &str| {
                Field { name: name.to_owned().into(), value: format!("\"{name} of {source}\"").into() }
            };
            let source = |(source, names): (usize, &Vec<&str>)| names.iter().map(|name| field(source, name)).collect();
            let sources: Vec<Vec<_>> = names.iter().enumerate().map(source).collect();
            let sources: Vec<Source<'_>> = sources.iter().map(Vec::as_slice).collect();
            let merged = merge(&sources);

            let mut expected = Vec::new();
            for name in names.iter().flatten().copied() {
                if !expected.contains(&name) {
                    expected.push(name);
                }
            }
            prop_assert_eq!(merged.iter().map(|field| field.name).collect::<Vec<_>>(), expected);
            for winner in &merged {
                let having = (0..names.len()).rev().filter(|source| names[*source].contains(&winner.name));
                let having: Vec<_> = having.map(|source| (source, format!("\"{} of {source}\"", winner.name))).collect();
                let found = [(winner.source, winner.value)].into_iter().chain(hidden(&sources, winner));
                prop_assert_eq!(found.map(|(source, value)| (source, value.to_owned())).collect::<Vec<_>>(), having);
            }
        }
    }
}
