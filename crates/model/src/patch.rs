//! Patches: three ways to say what should change in a document.

use serde_json::json;

use crate::{Map, Value};

/// A patch of one of the three kinds.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 7396: objects are merged, null removes, lists are replaced.
    Merge(Value),
    /// RFC 6902: a list of operations.
    Json(json_patch::Patch),
    /// As merge, but lists of objects are merged by `id`; `{"id": …, "$patch": "delete"}` takes one out.
    Strategic(Value),
}

/// A patch that does not fit the document.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PatchFailed(String);

impl Patch {
    /// The fields after the patch.
    pub fn apply(&self, fields: Map) -> Result<Map, PatchFailed> {
        let mut document = Value::Object(fields);
        match self {
            Self::Merge(patch) => json_patch::merge(&mut document, patch),
            Self::Json(patch) => {
                json_patch::patch(&mut document, patch).map_err(|error| PatchFailed(error.to_string()))?;
            }
            Self::Strategic(patch) => {
                check_directives(patch, false)?;
                merge(&mut document, patch);
            }
        }
        match document {
            Value::Object(fields) => Ok(fields),
            _ => Err(PatchFailed("the patch leaves no object behind".to_owned())),
        }
    }
}

/// The directive that takes an item out of a list.
const DIRECTIVE: &str = "$patch";

/// The one directive that is understood must not be mistaken for data, nor data for another. It removes a field or an
/// item of a list that is keyed by id, and stands nowhere else.
fn check_directives(patch: &Value, removable: bool) -> Result<(), PatchFailed> {
    match patch {
        Value::Object(map) => match map.get(DIRECTIVE) {
            Some(directive) if !removable || *directive != json!("delete") => Err(PatchFailed(format!(
                "\"{DIRECTIVE}\": {directive} is not understood here; \"delete\" removes a field, or an item with an id"
            ))),
            _ => map.values().try_for_each(|value| check_directives(value, true)),
        },
        Value::Array(items) => items.iter().try_for_each(|item| check_directives(item, is_keyed(items))),
        _ => Ok(()),
    }
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_fields(target, patch),
        (Value::Array(target), Value::Array(patch)) if is_keyed(target) && is_keyed(patch) => merge_list(target, patch),
        (target, patch) => *target = fresh(patch),
    }
}

fn merge_fields(target: &mut Map, patch: &Map) {
    for (name, value) in patch {
        if value.is_null() || value.get(DIRECTIVE).is_some() {
            target.shift_remove(name);
        } else if name != DIRECTIVE {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

fn merge_list(target: &mut Vec<Value>, patch: &[Value]) {
    for item in patch {
        let place = target.iter().position(|known| known["id"] == item["id"]);
        match (place, item.get(DIRECTIVE) == Some(&json!("delete"))) {
            (Some(place), true) => drop(target.remove(place)),
            (None, true) => {}
            (Some(place), false) => merge(&mut target[place], item),
            (None, false) => target.push(fresh(item)),
        }
    }
}

fn is_keyed(list: &[Value]) -> bool {
    list.iter().all(|item| item.get("id").is_some_and(Value::is_string))
}

/// A patch where nothing was before: what it removes was not there.
fn fresh(patch: &Value) -> Value {
    match patch {
        Value::Object(patch) => {
            let mut target = Map::new();
            merge_fields(&mut target, patch);
            Value::Object(target)
        }
        Value::Array(patch) if is_keyed(patch) => {
            let mut target = Vec::new();
            merge_list(&mut target, patch);
            Value::Array(target)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategic(document: Value, patch: Value) -> Value {
        let Value::Object(fields) = document else { panic!("a document is an object") };
        Value::Object(Patch::Strategic(patch).apply(fields).unwrap())
    }

    #[test]
    fn lists_of_references_are_merged_by_id() {
        let document = json!({"refs": [{"id": "a", "x": 1}, {"id": "b"}], "tags": [1, 2]});
        let patch = json!({"refs": [{"id": "b", "y": 2}, {"id": "c"}, {"id": "a", "$patch": "delete"}], "tags": [3]});
        assert_eq!(strategic(document, patch), json!({"refs": [{"id": "b", "y": 2}, {"id": "c"}], "tags": [3]}));
    }

    #[test]
    fn null_removes_and_nothing_of_the_patch_language_stays_behind() {
        let patch = json!({"a": null, "b": {"c": null, "d": 1}, "refs": [{"id": "x", "$patch": "delete"}, {"id": "y", "z": null}]});
        assert_eq!(strategic(json!({"a": 1}), patch), json!({"b": {"d": 1}, "refs": [{"id": "y"}]}));
    }

    #[test]
    fn directives_are_obeyed_and_never_stored() {
        assert_eq!(strategic(json!({"a": {"b": 1}, "c": 2}), json!({"a": {"$patch": "delete"}})), json!({"c": 2}));
        let unknown = Patch::Strategic(json!({"a": [{"id": "x", "$patch": "replace"}]}));
        assert!(unknown.apply(Map::new()).is_err());
        for misplaced in [json!({"$patch": "delete"}), json!({"a": [{"name": "x", "$patch": "delete"}]})] {
            assert!(Patch::Strategic(misplaced).apply(Map::new()).is_err());
        }
    }

    #[test]
    fn merge_and_json_patches_follow_their_standards() {
        let fields = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        let fields = fields.as_object().unwrap();
        let merged = Patch::Merge(json!({"a": {"b": null}, "l": [3]})).apply(fields.clone()).unwrap();
        assert_eq!(Value::Object(merged), json!({"a": {"c": 2}, "l": [3]}));
        let patch = serde_json::from_value(
            json!([{"op": "test", "path": "/a/b", "value": 1}, {"op": "remove", "path": "/a/b"}]),
        );
        let patch = Patch::Json(patch.unwrap());
        let patched = patch.apply(fields.clone()).unwrap();
        assert!(patch.apply(patched).is_err(), "the test no longer holds");
        assert!(Patch::Merge(json!(7)).apply(fields.clone()).is_err());
    }
}
