//! Differential tests: a cluster has what a plain reading of its document, field by field, gives.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use model::{Body, Document, Id, Map, Registry, ResourceType, Revision, State, Value, helm, prune_nulls};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{Cluster, NameIndex, Slot};
use crate::{Polls, cluster::no_variables, merge::Members};

static BUILT_IN: LazyLock<Registry> = LazyLock::new(|| Registry::built_in().unwrap());

/// Gives every id a slot, in the order in which a type's list names them.
#[derive(Default)]
struct Fresh(BTreeMap<usize, Vec<String>>);

impl Fresh {
    fn id(&self, ty: &ResourceType, slot: Slot) -> &str {
        &self.0[&ty.position][slot as usize]
    }
}

impl NameIndex for Fresh {
    fn slot(&mut self, ty: &ResourceType, id: &str) -> Result<Slot, String> {
        Id::parse(id).map_err(|error| error.to_string())?;
        let ids = self.0.entry(ty.position).or_default();
        let known = ids.iter().position(|known| known == id);
        let slot = known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        });
        Slot::try_from(slot).map_err(|error| error.to_string())
    }

    fn shared_name(&mut self, name: &str) -> Arc<str> {
        name.into()
    }
}

/// What a test compares of a cluster.
#[derive(Debug, PartialEq)]
struct Reading {
    identity: [Value; 3],
    dns: String,
    /// The references of each type: the id, whether it is enabled, the fields that it sets, and whether patches apply.
    lists: Vec<(String, Vec<ExpectedReference>)>,
    /// By component, what is served of its patches, and how many are no variables; nothing, if they cannot be expanded.
    patches: BTreeMap<String, Option<(Value, usize)>>,
    duplicates: Vec<(String, String)>,
    unread_lists: Vec<String>,
}

fn read(body: &str) -> Result<Reading, String> {
    let document = Document {
        kind: "cluster".into(),
        id: Id::parse("c").unwrap(),
        revision: Revision(1),
        state: State::Live,
        body: Body::plain(body),
    };
    let mut names = Fresh::default();
    let cluster = Cluster::read(&document, &BUILT_IN, &mut names, Polls::new(0)).map_err(|error| error.to_string())?;
    let identity: Value = serde_json::from_str(cluster.identity()).unwrap();
    let lists = BUILT_IN.definitions().map(|ty| {
        let list = cluster.references(ty.position).iter().map(|reference| {
            let fields = cluster.fields_of(reference);
            let id = names.id(ty, reference.slot).to_owned();
            let patches = cluster.patches_for(reference);
            assert!(patches.is_none_or(|patches| *patches.name == *id), "patches of another component");
            (id, reference.enabled, fields.map(|fields| serde_json::from_str(fields).unwrap()), patches.is_some())
        });
        (ty.list.clone(), list.collect())
    });
    let patches = cluster.patches().iter().map(|patches| {
        let members = cluster.members(patches).ok().map(|members| {
            let served = serde_json::from_str(&format!("{{{}}}", &members[1..])).unwrap();
            (served, patches.not_variables as usize)
        });
        (patches.name.to_string(), members)
    });
    let duplicates = BUILT_IN.definitions().filter_map(|ty| {
        let slot = cluster.duplicate(ty.position)?;
        Some((ty.list.clone(), names.id(ty, slot).to_owned()))
    });
    Ok(Reading {
        identity: ["name", "dns", "environment"].map(|name| identity[name].clone()),
        dns: cluster.dns().to_owned(),
        lists: lists.collect(),
        patches: patches.collect(),
        duplicates: duplicates.collect(),
        unread_lists: cluster.unread_lists().to_vec(),
    })
}

/// The members of an object in their order, each with its JSON; none, if it is no object.
fn members_of(json: &str) -> Option<Vec<(String, &str)>> {
    let Members(members) = serde_json::from_str(json).ok()?;
    Some(members.into_iter().map(|(name, value)| (name.into_owned(), value.get())).collect())
}

/// The same reading, written for nothing but to be understood; none, if the document cannot be read.
fn expected(body: &str) -> Option<Reading> {
    let members = members_of(body)?;
    // Of several fields of one name the last one counts.
    let fields: BTreeMap<&str, &str> = members.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let identity = ["cluster_name", "cluster_dns", "environment"].map(|name| {
        let value: Value = serde_json::from_str(fields.get(name)?).ok()?;
        value.is_string().then_some(value)
    });
    let identity = [identity[0].clone()?, identity[1].clone()?, identity[2].clone()?];
    let dns = model::dns_spelling(identity[1].as_str()?).into_owned();
    let mut patches = BTreeMap::new();
    for (name, json) in
        fields.get("patches").filter(|json| **json != "null").map_or(Some(Vec::new()), |json| members_of(json))?
    {
        if json == "null" {
            continue;
        }
        let mut tree: Map = serde_json::from_str(json).ok()?;
        prune_nulls(&mut tree);
        let keys: Vec<_> = tree.keys().map(String::as_str).collect();
        let variables = no_variables(&keys).count();
        let expanded = helm::expand(&tree).ok();
        patches.insert(name, expanded.map(|values| (json!({"patches": tree, "values": values}), variables)));
    }
    let (mut lists, mut duplicates) = (Vec::new(), Vec::new());
    for ty in BUILT_IN.definitions() {
        let json = fields.get(ty.list.as_str()).filter(|json| **json != "null").copied().unwrap_or("[]");
        let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(json).ok()?;
        let list =
            items.into_iter().map(|item| expected_reference(item.get(), ty, &patches)).collect::<Option<Vec<_>>>()?;
        let ids: Vec<_> = list.iter().map(|(id, ..)| id.clone()).collect();
        let is_twice = |id: &&String| ids.iter().filter(|other| other == id).count() > 1;
        duplicates.extend(ids.iter().find(is_twice).map(|id| (ty.list.clone(), id.clone())));
        lists.push((ty.list.clone(), list));
    }
    let is_unread = |(name, json): &&(String, &str)| {
        let items: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
        BUILT_IN.definitions().all(|ty| ty.list != *name)
            && !items.is_empty()
            && items.iter().all(|it| it.get("id").is_some())
    };
    let unread_lists = members.iter().filter(is_unread).map(|(name, _)| name.clone()).collect();
    Some(Reading { identity, dns, lists, patches, duplicates, unread_lists })
}

type ExpectedReference = (String, bool, Option<Value>, bool);

fn expected_reference<T>(json: &str, ty: &ResourceType, patches: &BTreeMap<String, T>) -> Option<ExpectedReference> {
    let (mut id, mut set) = (None, Map::new());
    for (name, json) in members_of(json)? {
        let value: Value = serde_json::from_str(json).ok()?;
        match name.as_str() {
            "id" => id = Some(value.as_str()?.to_owned()),
            _ if value.is_null() => drop(set.shift_remove(&name)),
            _ if ty.is_default(&name, &value) => {}
            _ => drop(set.insert(name, value)),
        }
    }
    prune_nulls(&mut set);
    let id = id.filter(|id| Id::parse(id).is_ok())?;
    let (enabled, patched) = (set.get("enabled") != Some(&json!(false)), ty.patchable && patches.contains_key(&id));
    Some((id, enabled, (!set.is_empty()).then_some(Value::Object(set)), patched))
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
    // A number that no tree of JSON can hold.
    prop_oneof![300 => small_value(), 1 => Just("1e400".to_owned())]
}

/// Without such a number: of patches that are scalars it is copied, and of others it is an error.
fn small_value() -> impl Strategy<Value = String> {
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
    const BAD: [&str; 5] = ["nul", "\"", "01", "\"\\ud800\"", "\"a\u{1}b\""];
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
    let patch = (vec((key, small_value()), 0..4), spaces()).prop_map(|(all, spaces)| members(all, spaces));
    let all = vec((name(&["a", "b", "c", "\\u0062", "other"]), often(patch, small_value())), 0..4);
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
    fn a_cluster_is_what_each_field_of_its_document_says(document in document()) {
        prop_assert_eq!(read(&document).ok(), expected(&document), "{}: {:?}", document, read(&document));
    }
}

#[test]
fn what_we_write_ourselves_is_read() {
    let document = json!({
        "id": "x", "cluster_name": "x", "cluster_dns": "X.example", "environment": "dev", "labels": {"a": "b\n"},
        "node_count": 3, "vm_image": null, "patches": {"a": {"a.b[0]": "1", "c\\.d": "\"", "e": 1.5}, "b": {}},
        "namespaces": [{"id": "a"}, {"id": "b"}], "rolebindings": [],
        "platform_components": [{"id": "a", "enabled": false, "oci_tag": "x"}, {"id": "b", "enabled": true, "oci_tag": null}],
        "others": [{"id": "a"}]
    });
    let reading = read(&document.to_string()).unwrap();
    assert_eq!(Some(&reading), expected(&document.to_string()).as_ref());
    assert_eq!(reading.unread_lists, ["others"]);
    let components = &reading.lists.iter().find(|(list, _)| list == "platform_components").unwrap().1;
    let disabled = Some(json!({"enabled": false, "oci_tag": "x"}));
    assert_eq!(*components, [("a".to_owned(), false, disabled, true), ("b".to_owned(), true, None, true)]);
}

#[test]
fn the_last_of_several_fields_counts() {
    let document = |last: &Value| {
        format!(
            r#"{{"cluster_name":7,"cluster_name":"x","cluster_dns":"x","environment":"y","namespaces":[7],"namespaces":{last}}}"#
        )
    };
    assert!(read(&document(&json!([{"id": "a"}]))).is_ok());
    assert!(read(&document(&json!(7))).unwrap_err().ends_with("namespaces is not a list"));
}
