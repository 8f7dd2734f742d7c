//! The rules that JSON Schema does not say, or says in words that help nobody.

use super::ResourceType;
use crate::{FieldError, Id, Map, Value, kubernetes, yaml::child};

/// The largest number that survives: Flux reads numbers as 64-bit floats, in which every smaller integer is exact.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;

/// YAML reads no key of a mapping in one line that has more than 1,024; half of that leaves room for escapes.
const MAX_KEY: usize = 512;

pub(super) fn check(ty: &ResourceType, fields: &Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(Value::String(id)) = fields.get("id") {
        check_id(ty, id, &mut errors);
    }
    check_map(fields, Some(&ty.schema), At::Root, &mut errors);
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

fn check_map(map: &Map, schema: Option<&Value>, place: At<'_>, errors: &mut Vec<FieldError>) {
    match schema.and_then(|schema| schema.get("x-kubernetes")).and_then(Value::as_str) {
        Some("labels") => kubernetes::check_labels(map, &place.pointer(), errors),
        Some("annotations") => kubernetes::check_annotations(map, &place.pointer(), errors),
        _ => {}
    }
    for (name, value) in map {
        let field = At::Field(&place, name);
        check_text(name, field, errors);
        if name.len() > MAX_KEY {
            let message = format!("a key has at most {MAX_KEY} bytes");
            errors.push(FieldError::new(place.pointer(), "key-length", message));
        }
        let declared = || {
            let property = schema?.get("properties").and_then(|properties| properties.get(name));
            property.or_else(|| schema?.get("additionalProperties"))
        };
        check_value(value, &declared, field, errors);
    }
}

/// The schema is looked up where it is needed, which is seldom.
fn check_value<'a>(value: &Value, schema: &dyn Fn() -> Option<&'a Value>, place: At<'_>, errors: &mut Vec<FieldError>) {
    match value {
        // Where the schema gives a type, it speaks of null itself.
        Value::Null if schema().is_none_or(|schema| schema.get("type").or(schema.get("nullable")).is_none()) => {
            let message = "null vanishes on its way to the cluster: leave the field out";
            errors.push(FieldError::new(place.pointer(), "null", message));
        }
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() > MAX_NUMBER) => {
            let message = "numbers beyond 2^53 lose digits on their way to the cluster";
            errors.push(FieldError::new(place.pointer(), "number-range", message));
        }
        Value::Array(items) => {
            let schema = schema().and_then(|schema| schema.get("items"));
            for (at, item) in items.iter().enumerate() {
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
    // Most text has none: it is looked at in one sweep.
    if text.bytes().all(|byte| byte < 0x7f) {
        return;
    }
    let breaks = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if let Some(mark) = text.chars().find(|c| breaks(*c)) {
        let message = format!("U+{:04X} is a mark that Flux cannot read", u32::from(mark));
        errors.push(FieldError::new(place.pointer(), "control-character", message));
    }
}
