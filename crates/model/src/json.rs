//! The JSON of documents.

mod unambiguous;

use serde::{Deserialize, Deserializer};
pub use serde_json::Value;

pub use unambiguous::{ItemLimits, ListEvent, Unambiguous, read_json, read_lists};

use crate::{FieldError, yaml::child};

/// The fields of a document, in the order in which they were written.
pub type Map = serde_json::Map<String, Value>;

/// The largest integer that every reader of JSON holds exactly. Flux reads numbers as 64-bit floats.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The prefix of the names by which the JSON library marks its own values. An object with such a name would be read as the JSON in
/// its text, which no limit and no rule has checked.
pub(crate) const PRIVATE_NAME: &str = "$serde_json::private::";

/// Removes every `null` from a map, at any depth: Flux drops null members from its inputs, and a template that reads a dropped
/// member stalls the whole ResourceSet. An absent field and a null field mean the same here.
pub fn prune_nulls(map: &mut Map) {
    map.retain(|_, value| prune_value(value));
}

fn prune_value(value: &mut Value) -> bool {
    match value {
        Value::Null => return false,
        Value::Array(items) => items.retain_mut(prune_value),
        Value::Object(map) => prune_nulls(map),
        _ => {}
    }
    true
}

/// Reads a value of a type; an error has the JSON pointer to the wrong part.
pub fn decode<'de, T: Deserialize<'de>>(source: impl Deserializer<'de>) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(source)
        .map_err(|error| FieldError::new(pointer(error.path()), "json", error.inner().to_string()))
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |pointer, segment| match segment {
        serde_path_to_error::Segment::Map { key } => child(&pointer, key),
        serde_path_to_error::Segment::Seq { index } => format!("{pointer}/{index}"),
        _ => pointer,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_vanish_at_every_depth() {
        let Value::Object(mut map) = json!({"a": null, "b": {"c": null, "d": [null, 1, {"e": null}]}, "f": "null"})
        else {
            unreachable!()
        };
        prune_nulls(&mut map);
        assert_eq!(Value::Object(map), json!({"b": {"d": [1, {}]}, "f": "null"}));
    }
}
