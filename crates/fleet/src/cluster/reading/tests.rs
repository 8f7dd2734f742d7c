//! One pass says what reading each field by itself says, or nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use model::{Id, Registry, ResourceType, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{Names, Parts, Pass, Place};

static BUILT_IN: LazyLock<Registry> = LazyLock::new(|| Registry::built_in().unwrap());

/// Gives every id a place, in the order in which a type's list names them.
#[derive(Default)]
struct Fresh(BTreeMap<usize, Vec<String>>);

impl Names for Fresh {
    fn place(&mut self, ty: &ResourceType, id: &str) -> Result<Place, String> {
        Id::parse(id).map_err(|error| error.to_string())?;
        if self.find(ty, id).is_none() {
            self.0.entry(ty.position).or_default().push(id.to_owned());
        }
        self.find(ty, id).ok_or_else(|| "it was made just now".to_owned())
    }

    fn find(&self, ty: &ResourceType, id: &str) -> Option<Place> {
        let at = self.0.get(&ty.position)?.iter().position(|known| known == id)?;
        Place::try_from(at).ok()
    }

    fn patched(&mut self, name: &str) -> Arc<str> {
        name.into()
    }
}

fn in_one_pass(body: &str) -> Option<Result<Parts, String>> {
    let mut names = Fresh::default();
    Some(Pass::over(body, &BUILT_IN, &mut names)?.into_parts(&BUILT_IN, &mut names))
}

fn each_by_itself(body: &str) -> Result<Parts, String> {
    Parts::read_each(body, &BUILT_IN, &mut Fresh::default())
}

/// JSON, nearly: joined with and without white space, with names that are there twice, and sometimes cut.
fn members(all: Vec<(String, String)>, spaces: &str) -> String {
    let all: Vec<_> = all.iter().map(|(name, value)| format!("{name}{spaces}:{spaces}{value}")).collect();
    format!("{{{}}}", all.join(&format!(",{spaces}")))
}

fn spaces() -> impl Strategy<Value = &'static str> {
    prop_oneof![30 => Just(""), 1 => Just(" "), 1 => Just("\n")]
}

fn value() -> impl Strategy<Value = String> {
    const GOOD: [&str; 25] = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "7",
        "1.50",
        "123456789012345678",
        "\"\"",
        "\"x\"",
        "\"true\"",
        "\"007\"",
        "\"+7\"",
        "\"7\"",
        "\"-7\"",
        "\"null\"",
        "\"a\\u0041\\n\"",
        "\"é\"",
        "[]",
        "[null,{}]",
        "{}",
        "{\"k\":null}",
        "[{\"id\":1}]",
        "\"a b\"",
        "\"a.b\"",
    ];
    const BAD: [&str; 6] = ["nul", "\"", "01", "\"\\ud800\"", "\"a\u{1}b\"", "1e400"];
    often(select(GOOD.map(ToOwned::to_owned).to_vec()), select(BAD.map(ToOwned::to_owned).to_vec()))
}

/// Mostly good, so that whole documents sometimes are.
fn often<T: Clone + std::fmt::Debug>(
    good: impl Strategy<Value = T> + 'static,
    any: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = T> {
    prop_oneof![50 => good, 1 => any]
}

fn name(names: &[&str]) -> impl Strategy<Value = String> + use<> {
    select(names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>())
}

fn list() -> impl Strategy<Value = String> {
    let id =
        often(name(&["a", "b", "c"]), select(vec!["\"\\u0061\"".to_owned(), "\"a b\"".to_owned(), "7".to_owned()]));
    let more = (often(name(&["enabled", "oci_tag", "x"]), name(&["id", "\\u0069d"])), value());
    let entry = (id, vec(more, 0..3), spaces(), 0..60_u8).prop_map(|(id, mut more, spaces, at)| {
        if at > 0 {
            more.insert(usize::from(at) % (more.len() + 1), ("\"id\"".to_owned(), id));
        }
        members(more, spaces)
    });
    vec(often(entry, value()), 0..5).prop_map(|entries| format!("[{}]", entries.join(",")))
}

fn patches() -> impl Strategy<Value = String> {
    let key = name(&["A", "B_STR", "a.b", "a.c[0]", "a", "é", "a\\\\.b", "\\u0041", "a..b", "CLUSTER_NAME"]);
    let patch = (vec((key, value()), 0..4), spaces()).prop_map(|(all, spaces)| members(all, spaces));
    let all = vec((name(&["a", "b", "c", "\\u0062", "other"]), often(patch, value())), 0..4);
    (all, spaces()).prop_map(|(all, spaces)| members(all, spaces))
}

fn document() -> impl Strategy<Value = String> {
    let identity = ["cluster_name", "cluster_dns", "environment"].map(|name| {
        let text = often(select(vec!["\"x\"".to_owned(), "\"X.example.\"".to_owned()]), value());
        text.prop_map(move |text| (format!("\"{name}\""), text))
    });
    let lists = ["platform_components", "namespaces", "rolebindings", "others"]
        .map(|name| often(list(), value()).prop_map(move |list| (format!("\"{name}\""), list)));
    let patches = often(patches(), value()).prop_map(|patches| ("\"patches\"".to_owned(), patches));
    let other = (name(&["id", "labels", "clusters", "environment", "namespaces", "patches"]), often(value(), list()));
    let fields = (identity, lists, patches, often(Just(Vec::new()), vec(other, 1..2))).prop_map(
        |(identity, lists, patches, others)| {
            identity.into_iter().chain(lists).chain([patches]).chain(others).collect::<Vec<_>>()
        },
    );
    let ends = often(Just(""), select(vec![" ", "x", "}"]));
    (fields.prop_shuffle(), 0..200_usize, spaces(), ends).prop_map(|(mut fields, without, spaces, end)| {
        if without < fields.len() {
            fields.remove(without);
        }
        members(fields, spaces) + end
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn one_pass_says_what_each_field_says_by_itself(document in document()) {
        if let Some(parts) = in_one_pass(&document) {
            prop_assert_eq!(format!("{parts:?}"), format!("{:?}", each_by_itself(&document)), "{}", document);
        }
    }
}

#[test]
fn what_we_write_ourselves_is_read_in_one_pass() {
    let document = json!({
        "id": "x", "cluster_name": "x", "cluster_dns": "X.example", "environment": "dev", "labels": {"a": "b\n"},
        "node_count": 3, "vm_image": null, "patches": {"a": {"a.b[0]": "1", "c\\.d": "\"", "e": 1.5}, "b": {}},
        "namespaces": [{"id": "a"}, {"id": "b"}], "rolebindings": [],
        "platform_components": [{"id": "a", "enabled": false, "oci_tag": "x"}, {"id": "b", "enabled": true, "oci_tag": null}],
        "others": [{"id": "a"}]
    });
    let parts = in_one_pass(&document.to_string()).unwrap();
    assert_eq!(format!("{parts:?}"), format!("{:?}", each_by_itself(&document.to_string())));
    assert_eq!(parts.unwrap().odd.unread_lists, ["others"]);
}

#[test]
fn the_last_of_several_fields_counts() {
    let document = |last: &Value| {
        format!(
            r#"{{"cluster_name":7,"cluster_name":"x","cluster_dns":"x","environment":"y","namespaces":[7],"namespaces":{last}}}"#
        )
    };
    assert!(in_one_pass(&document(&json!([]))).is_none());
    assert!(each_by_itself(&document(&json!([{"id": "a"}]))).is_ok());
    assert_eq!(each_by_itself(&document(&json!(7))).unwrap_err(), "namespaces is not a list");
}
