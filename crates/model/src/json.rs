//! JSON as documents hold it.

mod unambiguous;

use serde::{Deserialize, Deserializer};
pub use serde_json::Value;

pub use unambiguous::{ItemLimits, ListEvent, Unambiguous, read_json, read_lists};

use crate::{FieldError, yaml::child};

/// The fields of a document, in the order in which they were written.
pub type Map = serde_json::Map<String, Value>;

/// The largest integer that every reader of JSON holds exactly. Flux reads numbers as 64-bit floats.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// What the names begin with by which the JSON library marks values for itself. Read as data, such an object becomes whatever
/// its text says, which no limit and no rule has looked at.
pub(crate) const PRIVATE_NAME: &str = "$serde_json::private::";

/// Takes every `null` out of a map, at any depth: Flux drops null members from the inputs it keeps, and a template
/// that reads a dropped member stalls the whole set. An absent field and a null field mean the same here.
pub fn prune_nulls(map: &mut Map) {
    map.retain(|_, value| keep(value));
}

fn keep(value: &mut Value) -> bool {
    match value {
        Value::Null => return false,
        Value::Array(items) => items.retain_mut(keep),
        Value::Object(map) => prune_nulls(map),
        _ => {}
    }
    true
}

/// Reads a value of a type; what is wrong is told with a JSON pointer to where.
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
