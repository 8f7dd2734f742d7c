//! The rules that JSON Schema cannot express, or would report with unclear messages.

use std::collections::BTreeMap;

use super::ResourceType;
use crate::{Excerpt, FieldError, Id, Map, Value, kubernetes, limits::ERRORS, yaml::child};

/// The parts of a schema that these rules need, computed once and not for every document. The default is that of an empty schema.
#[derive(Default)]
pub(super) struct Outline {
    metadata: Option<Metadata>,
    /// Whether it declares a type, and so decides about null itself.
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
    pub(super) fn from_schema(schema: &Value) -> Self {
        let metadata = match schema.get("x-kubernetes").and_then(Value::as_str) {
            Some("labels") => Some(Metadata::Labels),
            Some("annotations") => Some(Metadata::Annotations),
            _ => None,
        };
        let part = |keyword: &str| schema.get(keyword).map(|schema| Box::new(Self::from_schema(schema)));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            metadata,
            is_typed: schema.get("type").or(schema.get("nullable")).is_some(),
            properties: properties.map(|(name, schema)| (name.clone(), Self::from_schema(schema))).collect(),
            others: part("additionalProperties"),
            items: part("items"),
        }
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.others.as_deref())
    }
}

/// The largest number that Flux reads exactly: it reads numbers as 64-bit floats.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;

/// YAML allows at most 1,024 characters for a key in one line; half of that leaves room for escapes.
const MAX_KEY: usize = 512;

pub(super) fn check(ty: &ResourceType, fields: &Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(Value::String(id)) = fields.get("id") {
        check_id(ty, id, &mut errors);
    }
    check_map(fields, Some(&ty.outline), Location::Root, &mut errors);
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
        let message = format!("\"{id}\" is reserved: Flux would take it over and later delete it with all its content");
        errors.push(FieldError::new("/id", "reserved", message));
    }
}

/// A location in a document. Its pointer is written only for an error.
#[derive(Clone, Copy)]
enum Location<'a> {
    Root,
    Field(&'a Location<'a>, &'a str),
    Item(&'a Location<'a>, usize),
}

impl Location<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(parent, name) => child(&parent.pointer(), name),
            Self::Item(parent, at) => format!("{}/{at}", parent.pointer()),
        }
    }
}

fn check_map(map: &Map, schema: Option<&Outline>, location: Location<'_>, errors: &mut Vec<FieldError>) {
    match schema.and_then(|schema| schema.metadata) {
        Some(Metadata::Labels) => kubernetes::check_labels(map, &location.pointer(), errors),
        Some(Metadata::Annotations) => kubernetes::check_annotations(map, &location.pointer(), errors),
        None => {}
    }
    for (name, value) in map {
        if errors.len() >= ERRORS {
            return;
        }
        let field = Location::Field(&location, name);
        check_text(name, field, errors);
        if name.len() > MAX_KEY {
            let message = format!("a key has at most {MAX_KEY} bytes");
            errors.push(FieldError::new(location.pointer(), "key-length", message));
        }
        check_value(value, &|| schema?.property(name), field, errors);
    }
}

/// The schema is looked up only when it is needed, which is seldom.
fn check_value<'a>(
    value: &Value,
    schema: &dyn Fn() -> Option<&'a Outline>,
    location: Location<'_>,
    errors: &mut Vec<FieldError>,
) {
    match value {
        // If the schema declares a type, it decides about null itself.
        Value::Null if schema().is_none_or(|schema| !schema.is_typed) => {
            let message = "null does not reach the cluster: leave the field out";
            errors.push(FieldError::new(location.pointer(), "null", message));
        }
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() > MAX_NUMBER) => {
            let message = "numbers beyond 2^53 reach the cluster with other digits";
            errors.push(FieldError::new(location.pointer(), "number-range", message));
        }
        Value::Array(items) => {
            let schema = schema().and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter().enumerate() {
                if errors.len() >= ERRORS {
                    return;
                }
                check_value(item, &|| schema, Location::Item(&location, at), errors);
            }
        }
        Value::Object(map) => check_map(map, schema(), location, errors),
        Value::String(text) => check_text(text, location, errors),
        _ => {}
    }
}

/// Refuses unprintable characters: they break the YAML that Flux generates, and with it every input of the type.
fn check_text(text: &str, location: Location<'_>, errors: &mut Vec<FieldError>) {
    // Most texts have none, which two fast scans show.
    if text.is_ascii() && !text.as_bytes().contains(&0x7f) {
        return;
    }
    let breaks = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if let Some(mark) = text.chars().find(|c| breaks(*c)) {
        let message = format!("U+{:04X} is a character that Flux cannot read", u32::from(mark));
        errors.push(FieldError::new(location.pointer(), "control-character", message));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Location, check_text};

    proptest! {
        #[test]
        fn a_mark_is_found_wherever_it_is(text in "([ -~é\u{fffd}]{0,20}[\u{7e}-\u{a0}\u{fffd}-\u{ffff}]?){0,3}") {
            let mut errors = Vec::new();
            check_text(&text, Location::Root, &mut errors);
            let has_mark = text.chars().any(|c| matches!(u32::from(c), 0x7f..=0x9f | 0xfffe..=0xffff));
            prop_assert_eq!(!errors.is_empty(), has_mark);
        }
    }
}
