//! The one rule by which a definition and a reference become an input.
//!
//! Sources are laid over one another, the weakest first; a field of a stronger one hides the same field of a weaker
//! one. Today there are three: the type's defaults, the definition, the reference. Nothing here knows a type by name.
//!
//! Fields are JSON text from the moment their document is read: a poll copies them and understands none of them.

use std::{borrow::Cow, fmt};

use model::{Id, Map, ResourceType, Value};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// What a definition comes to for a cluster that says nothing beside the id, as JSON text: each field where it is served.
#[derive(Debug)]
pub(crate) struct Shape {
    /// `"id":"…"`
    id: Box<str>,
    fields: Box<[Field]>,
    nests: Box<[Nest]>,
}

/// An object that takes some of the fields.
#[derive(Debug)]
struct Nest {
    name: Box<str>,
    /// `"name":{`
    head: Box<str>,
    /// All that it can take; the definition need not say them.
    fields: Box<[Field]>,
}

#[derive(Debug)]
struct Field {
    name: Box<str>,
    /// `"name":`, and the value behind it if there is one.
    text: Box<str>,
    /// Where the value begins.
    value: usize,
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

impl Shape {
    /// The fields that a definition says, over what the type says where it says nothing.
    pub(crate) fn of(ty: &ResourceType, id: &Id, fields: &Map) -> Self {
        let value = |name: &str| fields.get(name).or_else(|| ty.defaults.get(name));
        let nest = |nest: &model::Nest| Nest {
            name: nest.name.as_str().into(),
            head: format!("{}{{", key(&nest.name)).into(),
            fields: nest.fields.iter().map(|name| Field::new(name, value(name))).collect(),
        };
        let nests: Box<[Nest]> = ty.nests.iter().map(nest).collect();
        let names = ty.defaults.keys().chain(fields.keys().filter(|name| !ty.defaults.contains_key(*name)));
        let outside = names.filter(|name| !nests.iter().any(|nest| nest.has(name)));
        let fields = outside.map(|name| Field::new(name, value(name))).collect();
        Self { id: format!("\"id\":{}", Value::from(id.as_str())).into(), fields, nests }
    }

    /// Writes the members of the input that this and what a reference says beside the id come to.
    pub(crate) fn write(&self, text: &mut String, said: &Members<'_>) {
        let over = |name: &str| said.0.iter().rev().find(|(over, _)| over == name).map(|(_, value)| value.get());
        text.push_str(&self.id);
        for field in &self.fields {
            text.push(',');
            field.write(text, over(&field.name));
        }
        for (at, (name, value)) in said.0.iter().enumerate() {
            let later = said.0[at + 1..].iter().any(|(other, _)| other == name);
            let known =
                self.fields.iter().any(|field| *field.name == **name) || self.nests.iter().any(|it| it.has(name));
            if !later && !known {
                text.push(',');
                text.push_str(&key(name));
                text.push_str(value.get());
            }
        }
        for nest in &self.nests {
            text.push(',');
            text.push_str(&nest.head);
            let mut comma = "";
            for field in &nest.fields {
                let over = over(&field.name);
                if over.is_some() || field.is_said() {
                    text.push_str(comma);
                    field.write(text, over);
                    comma = ",";
                }
            }
            text.push('}');
        }
    }
}

impl Nest {
    /// Whether something of this name has no place outside: it is in here, or would be taken for it.
    fn has(&self, name: &str) -> bool {
        *self.name == *name || self.fields.iter().any(|field| *field.name == *name)
    }
}

impl Field {
    fn new(name: &str, value: Option<&Value>) -> Self {
        let key = key(name);
        let text = value.map_or_else(|| key.clone(), |value| format!("{key}{value}"));
        Self { name: name.into(), text: text.into(), value: key.len() }
    }

    fn is_said(&self) -> bool {
        self.text.len() > self.value
    }

    /// Writes the field, with another value if there is one over it.
    fn write(&self, text: &mut String, over: Option<&str>) {
        match over {
            None => text.push_str(&self.text),
            Some(value) => {
                text.push_str(&self.text[..self.value]);
                text.push_str(value);
            }
        }
    }
}

/// `"name":`
fn key(name: &str) -> String {
    format!("{}:", Value::from(name))
}
