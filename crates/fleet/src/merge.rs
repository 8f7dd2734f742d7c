//! The one rule by which a definition and a reference become an input.
//!
//! Sources are laid over one another, the weakest first; a field of a stronger one hides the same field of a weaker
//! one. Today there are three: the type's defaults, the definition, the reference. Nothing here knows a type by name.
//!
//! Fields are JSON text from the moment their document is read: a poll copies them and understands none of them.

use std::{borrow::Cow, fmt};

use model::{Map, ResourceType, Value};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    name: Box<str>,
    /// `"name":value`
    text: Box<str>,
}

/// The fields that a definition says, over what the type says where it says nothing.
pub(crate) fn defined(ty: &ResourceType, fields: &Map) -> Box<[Field]> {
    let mut all = ty.defaults.clone();
    all.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    let field = |(name, value): (String, Value)| {
        let text = format!("{}:{value}", Value::String(name.clone())).into();
        Field { name: name.into(), text }
    };
    all.into_iter().map(field).collect()
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

/// Writes the members of the input that fields and what a reference says beside them come to.
pub(crate) fn write(text: &mut String, ty: &ResourceType, id: &str, fields: &[Field], said: &Members<'_>) {
    let over = |name: &str| said.0.iter().rev().find(|(over, _)| over == name).map(|(_, value)| value.get());
    let nested = |name: &str| ty.nests.iter().any(|nest| nest.name == name || nest.fields.iter().any(|it| it == name));
    text.push_str("\"id\":\"");
    // Ids of the fleet hold nothing that JSON would escape.
    text.push_str(id);
    text.push('"');
    for field in fields.iter().filter(|field| !nested(&field.name)) {
        text.push(',');
        field.write(text, over(&field.name));
    }
    for (at, (name, value)) in said.0.iter().enumerate() {
        let later = said.0[at + 1..].iter().any(|(other, _)| other == name);
        if !later && !nested(name) && !fields.iter().any(|field| *field.name == **name) {
            text.push(',');
            push_member(text, name, value.get());
        }
    }
    for nest in &ty.nests {
        text.push(',');
        push_member(text, &nest.name, "{");
        let start = text.len();
        for name in &nest.fields {
            let comma = if text.len() == start { "" } else { "," };
            match (fields.iter().find(|field| *field.name == **name), over(name)) {
                (Some(field), over) => {
                    text.push_str(comma);
                    field.write(text, over);
                }
                (None, Some(value)) => {
                    text.push_str(comma);
                    push_member(text, name, value);
                }
                (None, None) => {}
            }
        }
        text.push('}');
    }
}

impl Field {
    /// Writes the field, with another value if there is one over it.
    fn write(&self, text: &mut String, over: Option<&str>) {
        match over {
            None => text.push_str(&self.text),
            Some(value) => push_member(text, &self.name, value),
        }
    }
}

fn push_member(text: &mut String, name: &str, value: &str) {
    text.push_str(&Value::from(name).to_string());
    text.push(':');
    text.push_str(value);
}
