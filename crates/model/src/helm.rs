//! Flat patches to nested values, by the rules of Helm's `--set`.
//!
//! A patch is a flat map from a value path to a value. Flux could hand each pair to Helm by itself, but on that way a
//! comma, a brace or a backslash in a value changes its meaning, and a path with `[` cannot be a `ConfigMap` key. So
//! the tree is built here, with Helm's own rules for paths and for the types of strings, and is served whole.
//!
//! What Helm would ignore or cut is refused instead: a patch means all that it says, or it is an error.

use crate::{Map, Value};

/// The largest list index, as in Helm: `[1000000000]` must not allocate a list of that length.
const MAX_INDEX: usize = 65_536;
/// The deepest path, as in Helm.
const MAX_DEPTH: usize = 30;

/// A patch that has no meaning.
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
    for (key, value) in entries {
        let refuse = |rule| PatchError { key: key.clone(), rule };
        let path = parse_path(key).map_err(refuse)?;
        *reach(&mut values, path).map_err(refuse)? = typed(value);
    }
    Ok(values)
}

/// A path: a key of the tree's root, and the steps from there.
struct Path {
    root: String,
    steps: Vec<Step>,
}

enum Step {
    Key(String),
    Index(usize),
}

fn parse_path(text: &str) -> Result<Path, &'static str> {
    let mut root = None;
    let mut steps = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| !matches!(c, '.' | '[')) {
            match c {
                '\\' => key.push(chars.next().ok_or("a path cannot end in a backslash")?),
                ']' => return Err("a ']' has no '['"),
                c => key.push(c),
            }
        }
        if key.is_empty() {
            return Err("a path has no empty part");
        }
        match root {
            None => root = Some(key),
            Some(_) => steps.push(Step::Key(key)),
        }
        while chars.next_if_eq(&'[').is_some() {
            let mut digits = String::new();
            while let Some(c) = chars.next_if(char::is_ascii_digit) {
                digits.push(c);
            }
            if chars.next() != Some(']') || digits.is_empty() {
                return Err("a list index is a number between '[' and ']'");
            }
            match digits.parse() {
                Ok(index) if index <= MAX_INDEX => steps.push(Step::Index(index)),
                _ => return Err("a list index is at most 65536"),
            }
        }
        match chars.next() {
            None => break,
            Some('.') => {}
            Some(_) => return Err("a list index is followed by '.', '[' or the end"),
        }
    }
    if steps.len() >= MAX_DEPTH {
        return Err("a path has at most 30 parts");
    }
    root.map(|root| Path { root, steps }).ok_or("a path has no empty part")
}

/// The place at a path, made where it is missing. Lists grow with nulls, as in Helm.
fn reach(values: &mut Map, path: Path) -> Result<&mut Value, &'static str> {
    const CONFLICT: &str = "another patch puts a value of another shape on this path";
    let mut place = values.entry(path.root).or_insert(Value::Null);
    for step in path.steps {
        place = match step {
            Step::Key(key) => {
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut().ok_or(CONFLICT)?.entry(key).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if place.is_null() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut().ok_or(CONFLICT)?;
                if list.len() <= index {
                    list.resize(index + 1, Value::Null);
                }
                &mut list[index]
            }
        };
    }
    if place.is_null() { Ok(place) } else { Err(CONFLICT) }
}

/// Gives a string the type that `--set` would give it; typed JSON stays as it is.
fn typed(value: &Value) -> Value {
    value.as_str().and_then(typed_text).unwrap_or_else(|| value.clone())
}

/// What `--set` takes a text for, unless it is just text.
#[must_use]
pub fn typed_text(text: &str) -> Option<Value> {
    if text.eq_ignore_ascii_case("true") {
        return Some(Value::Bool(true));
    }
    if text.eq_ignore_ascii_case("false") {
        return Some(Value::Bool(false));
    }
    if text.eq_ignore_ascii_case("null") {
        return Some(Value::Null);
    }
    // A leading zero keeps codes such as 0123 what they are.
    match text.parse::<i64>() {
        Ok(number) if text == "0" || !text.starts_with('0') => Some(Value::from(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn expanded(patches: Value) -> Result<Value, PatchError> {
        let Value::Object(patches) = patches else { panic!("patches are an object") };
        expand(&patches).map(Value::Object)
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
    fn what_has_no_meaning_is_refused() {
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
