//! Patches: three formats for changes to a document.

use std::{collections::BTreeSet, slice};

use serde_json::json;

use crate::{
    Excerpt, Map, Value,
    json::PRIVATE_NAME,
    limits::{PATCH_OPERATIONS, PATCH_WORK, Size},
};

/// A patch of one of the three kinds.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 7396: objects are merged, null removes, lists are replaced.
    Merge(Value),
    /// RFC 6902: a list of operations.
    Json(json_patch::Patch),
    /// As merge, but lists of objects are merged by `id`; `{"id": …, "$patch": "delete"}` removes an item.
    Strategic(Value),
}

/// A patch that does not fit the document, or would make it too large.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct PatchFailed {
    /// The rule that it breaks.
    pub rule: &'static str,
    /// The error message.
    pub message: String,
}

impl PatchFailed {
    fn new(message: impl Into<String>) -> Self {
        Self { rule: "patch", message: message.into() }
    }
}

impl Patch {
    /// The fields after the patch.
    pub fn apply(&self, fields: Map) -> Result<Map, PatchFailed> {
        let mut document = Value::Object(fields);
        match self {
            Self::Merge(patch) => json_patch::merge(&mut document, patch),
            Self::Json(operations) => apply_operations(&mut document, operations)?,
            Self::Strategic(patch) => {
                check_directives(patch, false)?;
                merge(&mut document, patch);
            }
        }
        match document {
            Value::Object(fields) => Ok(fields),
            _ => Err(PatchFailed::new("the result of the patch is not an object")),
        }
    }
}

impl Patch {
    /// Changes the fields in place; a patch that fails leaves them unchanged. The cost of a strategic patch is that of its values
    /// and of the lists that it changes, and not that of the whole document.
    pub fn apply_to(&self, fields: &mut Map) -> Result<(), PatchFailed> {
        match self {
            Self::Strategic(patch @ Value::Object(changes)) => {
                check_directives(patch, false)?;
                merge_fields(fields, changes);
            }
            _ => *fields = self.apply(fields.clone())?,
        }
        Ok(())
    }
}

/// Applies one operation after another and checks the size of each result: a copy can double a document and a move can deepen it,
/// so that a small patch could need more memory or stack than the process has. After an error the document is incomplete.
fn apply_operations(document: &mut Value, operations: &json_patch::Patch) -> Result<(), PatchFailed> {
    if operations.len() > PATCH_OPERATIONS {
        let message =
            format!("a JSON Patch has at most {PATCH_OPERATIONS} operations, and this has {}", operations.len());
        return Err(PatchFailed { rule: "patch-operations", message });
    }
    let before = Size::of_value(document);
    let mut work = 0;
    for (at, operation) in operations.iter().enumerate() {
        if operation.path().as_str().contains(PRIVATE_NAME) {
            let message = format!("operation {at}: names that begin with \"{PRIVATE_NAME}\" are reserved");
            return Err(PatchFailed::new(message));
        }
        json_patch::patch_unsafe(document, slice::from_ref(operation)).map_err(|error| {
            let path = Excerpt(operation.path());
            PatchFailed::new(format!("operation {at}, whose path is \"{path}\", cannot be applied: {}", error.kind))
        })?;
        let size = Size::of_value(document);
        if let Some(broken) = size.check(before).first() {
            let message = format!("operation {at}: {}", broken.message);
            return Err(PatchFailed { rule: "patch-size", message });
        }
        work += size.elements;
        if work > PATCH_WORK {
            let message = format!(
                "{} operations on a document of {} values are too much work for one patch; send several, or a merge patch",
                operations.len(),
                size.elements
            );
            return Err(PatchFailed { rule: "patch-operations", message });
        }
    }
    Ok(())
}

/// The directive that removes an item of a list.
const DIRECTIVE: &str = "$patch";

/// Refuses directives that are unknown or misplaced. The only directive removes a field, or an item of a list that is keyed by
/// id.
fn check_directives(patch: &Value, removable: bool) -> Result<(), PatchFailed> {
    match patch {
        Value::Object(map) => match map.get(DIRECTIVE) {
            Some(directive) if !removable || *directive != json!("delete") => Err(PatchFailed::new(format!(
                "\"{DIRECTIVE}\": {} is not allowed here; \"delete\" removes a field, or an item with an id",
                Excerpt(directive)
            ))),
            _ => map.values().try_for_each(|value| check_directives(value, true)),
        },
        Value::Array(items) => {
            let is_keyed = is_keyed(items);
            items.iter().try_for_each(|item| check_directives(item, is_keyed))
        }
        _ => Ok(()),
    }
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_fields(target, patch),
        (Value::Array(target), Value::Array(patch)) if is_keyed(target) && is_keyed(patch) => merge_list(target, patch),
        (target, patch) => *target = without_removals(patch),
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

/// Up to so many items are searched one by one, which is faster than an index.
const LINEAR_SEARCH: usize = 8;

/// Merges a list by id. A list may be as long as a document allows, so items are found by an index and not one by one.
fn merge_list(target: &mut Vec<Value>, patch: &[Value]) {
    let id = |item: &Value| item["id"].as_str().unwrap_or_default().to_owned();
    if patch.len() <= LINEAR_SEARCH {
        for item in patch {
            let at = target.iter().position(|known| known["id"] == item["id"]);
            match (at, item.get(DIRECTIVE) == Some(&json!("delete"))) {
                (Some(at), true) => drop(target.remove(at)),
                (None, true) => {}
                (Some(at), false) => merge(&mut target[at], item),
                (None, false) => target.push(without_removals(item)),
            }
        }
        return;
    }
    let mut positions: BTreeSet<(String, usize)> = target.iter().enumerate().map(|(at, item)| (id(item), at)).collect();
    let mut items: Vec<Option<Value>> = target.drain(..).map(Some).collect();
    for item in patch {
        // Of several with one id, the first.
        let first = positions.range((id(item), 0)..).next().filter(|(known, _)| item["id"] == **known).cloned();
        match (first, item.get(DIRECTIVE) == Some(&json!("delete"))) {
            (Some(position), true) => {
                items[position.1] = None;
                positions.remove(&position);
            }
            (None, true) => {}
            (Some((_, at)), false) => items[at].iter_mut().for_each(|known| merge(known, item)),
            (None, false) => {
                positions.insert((id(item), items.len()));
                items.push(Some(without_removals(item)));
            }
        }
    }
    target.extend(items.into_iter().flatten());
}

fn is_keyed(list: &[Value]) -> bool {
    list.iter().all(|item| item.get("id").is_some_and(Value::is_string))
}

/// The value of a patch where there was none before: its removals have no effect.
fn without_removals(patch: &Value) -> Value {
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
    fn of_items_with_the_same_id_the_first_is_patched() {
        let document = json!({"refs": [{"id": "a", "x": 1}, {"id": "b"}, {"id": "a", "x": 2}]});
        let patch = json!({"refs": [
            {"id": "a", "$patch": "delete"}, {"id": "a", "y": 3}, {"id": "b", "$patch": "delete"}, {"id": "b", "z": 4}
        ]});
        let merged = json!([{"id": "a", "x": 2, "y": 3}, {"id": "b", "z": 4}]);
        assert_eq!(strategic(document.clone(), patch.clone()), json!({"refs": merged}));
        // The same if there are so many that an index of them is made.
        let (mut patch, mut merged) = (patch, merged);
        for at in 0..LINEAR_SEARCH {
            let item = json!({"id": format!("i{at}")});
            patch["refs"].as_array_mut().unwrap().push(item.clone());
            merged.as_array_mut().unwrap().push(item);
        }
        assert_eq!(strategic(document, patch), json!({"refs": merged}));
    }

    #[test]
    fn null_removes_and_no_directive_is_stored() {
        let patch = json!({"a": null, "b": {"c": null, "d": 1}, "refs": [{"id": "x", "$patch": "delete"}, {"id": "y", "z": null}]});
        assert_eq!(strategic(json!({"a": 1}), patch), json!({"b": {"d": 1}, "refs": [{"id": "y"}]}));
    }

    #[test]
    fn directives_are_applied_and_never_stored() {
        assert_eq!(strategic(json!({"a": {"b": 1}, "c": 2}), json!({"a": {"$patch": "delete"}})), json!({"c": 2}));
        let unknown = Patch::Strategic(json!({"a": [{"id": "x", "$patch": "replace"}]}));
        assert!(unknown.apply(Map::new()).is_err());
        for misplaced in [json!({"$patch": "delete"}), json!({"a": [{"name": "x", "$patch": "delete"}]})] {
            assert!(Patch::Strategic(misplaced).apply(Map::new()).is_err());
        }
    }

    #[test]
    fn a_json_patch_cannot_write_a_name_that_the_json_library_reserves() {
        let name = "$serde_json::private::RawValue";
        for operation in [
            json!({"op": "add", "path": format!("/a/{name}"), "value": "[1]"}),
            json!({"op": "copy", "from": "/t", "path": format!("/a/{name}")}),
            json!({"op": "move", "from": "/t", "path": format!("/a/{name}")}),
        ] {
            let patch = Patch::Json(serde_json::from_value(json!([operation])).unwrap());
            let fields = json!({"a": {}, "t": "[1]"});
            let error = patch.apply(fields.as_object().unwrap().clone()).unwrap_err();
            assert!(error.message.contains("reserved"), "{error}");
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
