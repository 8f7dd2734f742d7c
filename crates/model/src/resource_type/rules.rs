//! The rules that JSON Schema does not say, or says in words that help nobody.

use std::collections::BTreeMap;

use super::ResourceType;
use crate::{Excerpt, FieldError, Id, Map, Value, kubernetes, limits::ERRORS, yaml::child};

/// What these rules need of a schema, found once and not for every document. No schema is one that says nothing.
#[derive(Default)]
pub(super) struct Outline {
    metadata: Option<Metadata>,
    /// Whether it gives a type, and so speaks of null itself.
    is_typed: bool,
    properties: BTreeMap<String, Outline>,
    others: Option<Box<Outline>>,
    items: Option<Box<Outline>>,
}

#[derive(Clone, Copy)]
enum Metadata {
    Labels,
    Annotations,
}

impl Outline {
    pub(super) fn of(schema: &Value) -> Self {
        let metadata = match schema.get("x-kubernetes").and_then(Value::as_str) {
            Some("labels") => Some(Metadata::Labels),
            Some("annotations") => Some(Metadata::Annotations),
            _ => None,
        };
        let part = |keyword: &str| schema.get(keyword).map(|schema| Box::new(Self::of(schema)));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            metadata,
            is_typed: schema.get("type").or(schema.get("nullable")).is_some(),
            properties: properties.map(|(name, schema)| (name.clone(), Self::of(schema))).collect(),
            others: part("additionalProperties"),
            items: part("items"),
        }
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.others.as_deref())
    }
}

/// The largest number that survives: Flux reads numbers as 64-bit floats, in which every smaller integer is exact.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;

/// YAML reads no key of a mapping in one line that has more than 1,024; half of that leaves room for escapes.
const MAX_KEY: usize = 512;

pub(super) fn check(ty: &ResourceType, fields: &Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(Value::String(id)) = fields.get("id") {
        check_id(ty, id, &mut errors);
    }
    check_map(fields, Some(&ty.outline), At::Root, &mut errors);
    errors.truncate(ERRORS);
    errors
}

fn check_id(ty: &ResourceType, id: &str, errors: &mut Vec<FieldError>) {
    if let Err(error) = Id::parse(id) {
        errors.push(FieldError::new("/id", "id", error.to_string()));
    }
    let is_reserved = |name: &String| match name.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => id == name,
    };
    if ty.reserved.iter().any(is_reserved) {
        let id = Excerpt(id);
        let message = format!("\"{id}\" is reserved: Flux would take it over and later delete it with all it holds");
        errors.push(FieldError::new("/id", "reserved", message));
    }
}

/// A place in a document. Its pointer is written only where something is wrong.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(parent, name) => child(&parent.pointer(), name),
            Self::Item(parent, at) => format!("{}/{at}", parent.pointer()),
        }
    }
}

fn check_map(map: &Map, schema: Option<&Outline>, place: At<'_>, errors: &mut Vec<FieldError>) {
    match schema.and_then(|schema| schema.metadata) {
        Some(Metadata::Labels) => kubernetes::check_labels(map, &place.pointer(), errors),
        Some(Metadata::Annotations) => kubernetes::check_annotations(map, &place.pointer(), errors),
        None => {}
    }
    for (name, value) in map {
        if errors.len() >= ERRORS {
            return;
        }
        let field = At::Field(&place, name);
        check_text(name, field, errors);
        if name.len() > MAX_KEY {
            let message = format!("a key has at most {MAX_KEY} bytes");
            errors.push(FieldError::new(place.pointer(), "key-length", message));
        }
        check_value(value, &|| schema?.property(name), field, errors);
    }
}

/// The schema is looked up where it is needed, which is seldom.
fn check_value<'a>(
    value: &Value,
    schema: &dyn Fn() -> Option<&'a Outline>,
    place: At<'_>,
    errors: &mut Vec<FieldError>,
) {
    match value {
        // Where the schema gives a type, it speaks of null itself.
        Value::Null if schema().is_none_or(|schema| !schema.is_typed) => {
            let message = "null vanishes on its way to the cluster: leave the field out";
            errors.push(FieldError::new(place.pointer(), "null", message));
        }
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() > MAX_NUMBER) => {
            let message = "numbers beyond 2^53 lose digits on their way to the cluster";
            errors.push(FieldError::new(place.pointer(), "number-range", message));
        }
        Value::Array(items) => {
            let schema = schema().and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter().enumerate() {
                if errors.len() >= ERRORS {
                    return;
                }
                check_value(item, &|| schema, At::Item(&place, at), errors);
            }
        }
        Value::Object(map) => check_map(map, schema(), place, errors),
        Value::String(text) => check_text(text, place, errors),
        _ => {}
    }
}

/// Marks that are not printed break the YAML that Flux makes of them, and with it every input of the type.
fn check_text(text: &str, place: At<'_>, errors: &mut Vec<FieldError>) {
    // Most text has none, which is seen in two sweeps.
    if text.is_ascii() && !text.as_bytes().contains(&0x7f) {
        return;
    }
    let breaks = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if let Some(mark) = text.chars().find(|c| breaks(*c)) {
        let message = format!("U+{:04X} is a mark that Flux cannot read", u32::from(mark));
        errors.push(FieldError::new(place.pointer(), "control-character", message));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{At, check_text};

    proptest! {
        #[test]
        fn a_mark_is_found_wherever_it_is(text in "([ -~é\u{fffd}]{0,20}[\u{7e}-\u{a0}\u{fffd}-\u{ffff}]?){0,3}") {
            let mut errors = Vec::new();
            check_text(&text, At::Root, &mut errors);
            let has_mark = text.chars().any(|c| matches!(u32::from(c), 0x7f..=0x9f | 0xfffe..=0xffff));
            prop_assert_eq!(!errors.is_empty(), has_mark);
        }
    }
}
