//! Converts flat patches to nested values, by the rules of Helm's `--set`.
//!
//! A patch is a flat map from a value path to a value. Flux could pass each pair to Helm, but then a comma, a brace or a
//! backslash in a value changes its meaning, and a path with `[` cannot be a `ConfigMap` key. So the tree is built here, with
//! Helm's own rules for paths and for the types of strings, and is served as a whole.
//!
//! A key or a value that Helm would ignore or truncate is refused: a patch takes effect completely, or it is an error.

mod path;
mod tree;

use std::borrow::Cow;

use crate::{Map, Value};

use tree::Node;

/// A patch that cannot be converted.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{key}\": {rule}")]
pub struct PatchError {
    /// The key of the patch.
    pub key: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

/// Expands patches into the tree of values that they describe.
///
/// Keys are taken in their sorted order, so that the result depends on the set alone and `a` comes before `a.b`:
/// an object at `a` is refined by `a.b`, and a scalar at `a` conflicts with it.
pub fn expand(patches: &Map) -> Result<Map, PatchError> {
    let mut entries: Vec<_> = patches.iter().filter(|(_, value)| !value.is_null()).collect();
    entries.sort_by_key(|(key, _)| *key);
    let mut values = Map::new();
    for (name, value) in tree::build(entries.into_iter().map(|(key, value)| (key.as_str(), Node::from(&typed(value)))))?
    {
        values.insert(name.into_owned(), value.into());
    }
    Ok(values)
}

/// Writes the tree of values that patches describe, as JSON. The patches must be sorted by key, their values must be scalars, as
/// JSON without escapes, and their keys must need no escapes in JSON. So the texts are copied and not parsed.
pub fn write<'a>(
    patches: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    text: &mut String,
) -> Result<(), PatchError> {
    let scalar = |json: &'a str| {
        let text = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        // A number with such a first digit has only one spelling.
        let is_canonical = |text: &str| matches!(text.as_bytes(), [b'1'..=b'9', ..]);
        match text.and_then(|text| Some((text, typed_text(text)?))) {
            None => Node::Scalar(Cow::Borrowed(json)),
            Some((_, Value::Null)) => Node::Null,
            Some((text, Value::Number(_))) if is_canonical(text) => Node::Scalar(Cow::Borrowed(text)),
            Some((_, typed)) => Node::Scalar(Cow::Owned(typed.to_string())),
        }
    };
    // Keys without path syntax are plain names.
    if patches.clone().all(|(key, _)| path::is_name(key)) {
        let members = patches.map(|(key, json)| (Cow::Borrowed(key), scalar(json)));
        tree::write_object(members, text);
    } else {
        tree::write_object(tree::build(patches.map(|(key, json)| (key, scalar(json))))?, text);
    }
    Ok(())
}

/// Gives a string the type that `--set` would give it; typed JSON stays as it is.
fn typed(value: &Value) -> Value {
    value.as_str().and_then(typed_text).unwrap_or_else(|| value.clone())
}

/// The typed value that `--set` makes of a text; none if it stays a string.
fn typed_text(text: &str) -> Option<Value> {
    if text.eq_ignore_ascii_case("true") {
        return Some(Value::Bool(true));
    }
    if text.eq_ignore_ascii_case("false") {
        return Some(Value::Bool(false));
    }
    if text.eq_ignore_ascii_case("null") {
        return Some(Value::Null);
    }
    // A number with a leading zero, such as the code 0123, stays a string.
    match text.parse::<i64>() {
        Ok(number) if text == "0" || !text.starts_with('0') => Some(Value::from(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn expanded(patches: Value) -> Result<Value, PatchError> {
        let Value::Object(patches) = patches else { panic!("patches are an object") };
        let values = expand(&patches);
        // For plain texts, `write` must give the same result.
        let texts: BTreeMap<_, _> = patches.iter().map(|(key, value)| (key.as_str(), value.to_string())).collect();
        let plain = |(key, json): (&&str, &String)| {
            !key.contains(['\\', '"']) && !json.contains('\\') && !json.starts_with(['{', '[', 'n'])
        };
        if texts.iter().all(plain) {
            let mut text = String::new();
            let written = write(texts.iter().map(|(key, json)| (*key, json.as_str())), &mut text);
            let expected = values.as_ref().map(|values| serde_json::to_string(values).unwrap());
            assert_eq!(written.as_ref().map(|()| text), expected);
        }
        values.map(Value::Object)
    }

    #[test]
    fn strings_get_the_types_that_set_gives_them() {
        for (text, value) in [
            ("3", json!(3)),
            ("-5", json!(-5)),
            ("+5", json!(5)),
            ("0", json!(0)),
            ("9223372036854775807", json!(i64::MAX)),
            ("9223372036854775808", json!("9223372036854775808")),
            ("03", json!("03")),
            ("0x1f", json!("0x1f")),
            ("1.5", json!("1.5")),
            ("1e3", json!("1e3")),
            ("true", json!(true)),
            ("TRUE", json!(true)),
            ("False", json!(false)),
            ("null", json!(null)),
            ("Null", json!(null)),
            ("~", json!("~")),
            ("", json!("")),
            (" 3", json!(" 3")),
            ("3\n", json!("3\n")),
            ("yes", json!("yes")),
            ("a,b=c", json!("a,b=c")),
            ("{a,b}", json!("{a,b}")),
            ("C:\\dir", json!("C:\\dir")),
            ("#2f855a", json!("#2f855a")),
        ] {
            assert_eq!(expanded(json!({"a.b": text})), Ok(json!({"a": {"b": value}})), "{text:?}");
        }
    }

    #[test]
    fn typed_json_stays_as_it_is() {
        let typed = json!({"n": 1.5, "t": true, "list": ["3", {"x": "true"}], "map": {"a.b": "1"}});
        assert_eq!(expanded(typed.clone()), Ok(typed));
    }

    #[test]
    fn paths_reach_into_maps_and_lists() {
        let patches = json!({
            "ui.color": "#fff",
            "ingress.hosts[0].host": "a",
            "ingress.hosts[0].paths[1]": "/b",
            "nodeSelector.kubernetes\\.io/os": "linux",
            "grid[1][0]": "1"
        });
        insta::assert_json_snapshot!(expanded(patches).unwrap(), @r##"
        {
          "grid": [
            null,
            [
              1
            ]
          ],
          "ingress": {
            "hosts": [
              {
                "host": "a",
                "paths": [
                  null,
                  "/b"
                ]
              }
            ]
          },
          "nodeSelector": {
            "kubernetes.io/os": "linux"
          },
          "ui": {
            "color": "#fff"
          }
        }
        "##);
    }

    #[test]
    fn an_object_is_refined_by_a_longer_path_whatever_the_order() {
        let refined = Ok(json!({"a": {"x": 1, "y": 2}}));
        assert_eq!(expanded(json!({"a": {"x": 1}, "a.y": "2"})), refined);
        assert_eq!(expanded(json!({"a.y": "2", "a": {"x": 1}})), refined);
    }

    #[test]
    fn a_patch_that_cannot_be_converted_is_refused() {
        let error = expanded(json!({"a[65535]": "1", "b": "2"})).unwrap_err();
        assert_eq!(error.key, "a[65535]", "a few bytes ask for much memory");
        assert!(expanded(json!({"a[16]": "1"})).is_ok() && expanded(json!({"a[17]": "1"})).is_err());
        assert!(expanded(json!({"a[9]": "1", "b[9]": "1"})).is_err(), "all lists together");
        let long: Value = (0..2_000).map(|at| (format!("a[{at}].b"), json!("1"))).collect::<Map>().into();
        assert!(expanded(long).is_ok(), "the order of the keys does not matter");
        let deep = ["a"; 31].join(".");
        for key in ["", ".a", "a.", "a..b", "a[x]", "a[", "a[]", "a[-1]", "a]", "a[0]b", "a[65537]", "a\\", &deep] {
            assert!(expanded(json!({key: "1"})).is_err(), "{key}");
        }
        for conflict in
            [json!({"a": "1", "a.b": "2"}), json!({"a[0]": "1", "a.b": "2"}), json!({"a": {"b": 1}, "a.b": "2"})]
        {
            assert!(expanded(conflict.clone()).is_err(), "{conflict}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_expanded_or_refused_and_never_panics(key in "[a\\.\\[\\]\\\\0-9]{0,12}", value in ".*") {
            let _ = expanded(json!({key: value}));
        }

        #[test]
        fn the_order_of_patches_does_not_matter(
            keys in prop::collection::btree_set("[ab](\\.[ab]|\\[[01]\\]){0,2}", 1..5),
        ) {
            let forth: Map = keys.iter().map(|key| (key.clone(), json!("1"))).collect();
            let back: Map = keys.iter().rev().map(|key| (key.clone(), json!("1"))).collect();
            prop_assert_eq!(expand(&forth), expand(&back));
        }
    }
}
