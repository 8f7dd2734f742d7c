//! Laws that hold for every fleet, tried on random ones.

use fleet::{Empty, Snapshot};
use model::{Body, Document, Id, Point, Revision, State, Value};
use proptest::{collection::vec, option, prelude::*, sample::subsequence};
use serde_json::json;

use crate::{BUILT_IN, after, cluster, fleet_of, poll};

pub(crate) const COMPONENTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
pub(crate) const CLUSTERS: [&str; 4] = ["c0", "c1", "c2", "c3"];

/// A catalogue in which some of the components are defined.
pub(crate) fn catalogue() -> impl Strategy<Value = Value> {
    let entry = (any::<bool>(), option::of("[a-z]{1,4}"), subsequence(COMPONENTS.to_vec(), 0..3));
    vec(option::of(entry), COMPONENTS.len()).prop_map(|entries| {
        let defined = COMPONENTS.iter().zip(entries).filter_map(|(id, entry)| {
            let (oci, tag, depends_on) = entry?;
            let url = if oci { "oci://registry/repo" } else { "https://charts.example" };
            let path = format!("path/{id}");
            Some((
                (*id).to_owned(),
                json!({"component_path": path, "oci_url": url, "oci_tag": tag, "depends_on": depends_on}),
            ))
        });
        Value::Object(defined.collect())
    })
}

/// A cluster that refers to some components, overrides some of their fields and patches some of them.
pub(crate) fn cluster_of(dns: String) -> impl Strategy<Value = Value> {
    let reference = (any::<Option<bool>>(), option::of("[a-z]{1,4}"), option::of("[a-z]{1,4}"));
    let chosen = subsequence(COMPONENTS.to_vec(), 0..=COMPONENTS.len()).prop_shuffle();
    let patch = option::of(("[a-z]{1,3}(\\.[a-z]{1,3}|\\[[01]\\])?", "[a-z0-9,\"\\\\]{0,5}"));
    (chosen, vec(reference, COMPONENTS.len()), vec(patch, COMPONENTS.len())).prop_map(
        move |(chosen, references, patches)| {
            let list: Vec<_> = chosen
                .iter()
                .zip(references)
                .map(|(id, (enabled, tag, path))| match enabled {
                    None => json!({"id": id, "oci_tag": tag, "component_path": path}),
                    Some(enabled) => json!({"id": id, "enabled": enabled, "oci_tag": tag, "component_path": path}),
                })
                .collect();
            let patches: model::Map = COMPONENTS
                .iter()
                .zip(patches)
                .filter_map(|(id, patch)| patch.map(|(key, value)| ((*id).to_owned(), json!({key: value}))))
                .collect();
            cluster(&dns, &json!({"platform_components": list, "patches": patches}))
        },
    )
}

pub(crate) fn clusters() -> impl Strategy<Value = Value> {
    CLUSTERS
        .map(|id| cluster_of(format!("{id}.example")))
        .prop_map(|clusters| Value::Object(CLUSTERS.iter().map(|id| (*id).to_owned()).zip(clusters).collect()))
}

fn patch_value() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "true",
        "FALSE",
        "null",
        "0",
        "7",
        "-7",
        "+7",
        "007",
        "1.5",
        "9223372036854775808",
        "x",
        "é",
        "a\"b",
        "a\\b",
        "a\nb",
    ];
    let others = [json!(true), json!(5), json!(1.5), json!(null), json!([1, null]), json!({"k": null, "l": "x"})];
    prop_oneof![
        proptest::sample::select(texts.to_vec()).prop_map(|text| json!(text)),
        proptest::sample::select(others.to_vec()),
    ]
}

pub(crate) fn answers(fleet: &Snapshot) -> Vec<String> {
    CLUSTERS
        .iter()
        .map(|id| match poll(fleet, &format!("{id}.example"), "platform-components") {
            Ok(answer) => answer.to_string(),
            Err(refusal) => refusal.to_string(),
        })
        .collect()
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn every_input_comes_from_exactly_one_reference(catalogue in catalogue(), clusters in clusters()) {
        let fleet = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        for (id, cluster) in clusters.as_object().unwrap() {
            let references = cluster["platform_components"].as_array().unwrap();
            let defined: Vec<_> = references.iter().filter(|it| catalogue.get(it["id"].as_str().unwrap()).is_some()).collect();
            let answer = match poll(&fleet, &format!("{id}.example"), "platform-components") {
                Err(fleet::Refusal::NoDefinitions { count, .. }) => {
                    prop_assert_eq!((defined.len(), references.len()), (0, count));
                    continue;
                }
                answer => answer.unwrap(),
            };
            prop_assert!(!defined.is_empty() || references.is_empty(), "references that yield nothing are no answer");
            let inputs = answer["inputs"].as_array().unwrap();
            prop_assert_eq!(inputs.len(), defined.len());
            for (input, reference) in inputs.iter().zip(defined) {
                prop_assert_eq!(&input["id"], &reference["id"]);
                let definition = &catalogue[reference["id"].as_str().unwrap()];
                let strongest = |field: &str, otherwise: Value| {
                    [&reference[field], &definition[field]].into_iter().find(|it| !it.is_null()).cloned().unwrap_or(otherwise)
                };
                prop_assert_eq!(&input["component_path"], &strongest("component_path", Value::Null));
                prop_assert_eq!(&input["source"]["oci_tag"], &strongest("oci_tag", json!("latest")));
                prop_assert_eq!(&input["enabled"], &strongest("enabled", json!(true)));
                let patches = cluster["patches"].get(reference["id"].as_str().unwrap());
                prop_assert_eq!(&input["patches"], &patches.cloned().unwrap_or(json!({})));
                prop_assert_eq!(&input["cluster"]["name"], &cluster["cluster_name"]);
            }
        }
    }

    #[test]
    fn an_override_never_leaks_to_another_cluster(
        catalogue in catalogue(), clusters in clusters(), changed in cluster_of("c0.example".to_owned()),
    ) {
        let before = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        let after = after(&before, &json!({"clusters": {"c0": changed}}));
        prop_assert_eq!(&answers(&before)[1..], &answers(&after)[1..]);
    }

    #[test]
    fn an_answer_depends_on_the_documents_alone(catalogue in catalogue(), clusters in clusters()) {
        let at_once = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));

        // The same documents, written one by one, clusters first, with detours.
        let mut one_by_one = fleet_of(&json!({}));
        for (list, documents) in [("clusters", &clusters), ("platform_components", &catalogue)] {
            for (id, body) in documents.as_object().unwrap().iter().rev() {
                for body in [body.clone(), json!(false), body.clone()] {
                    one_by_one = after(&one_by_one, &json!({list: {id: body}}));
                }
            }
        }
        prop_assert_eq!(answers(&at_once), answers(&one_by_one));
        prop_assert_eq!(at_once.problems().collect::<Vec<_>>(), one_by_one.problems().collect::<Vec<_>>());

        // And loaded from a store.
        let documents = [("cluster", &clusters), ("platform_component", &catalogue)].into_iter().flat_map(|(kind, all)| {
            all.as_object().unwrap().iter().map(move |(id, body)| Document {
                kind: kind.into(),
                id: Id::parse(id).unwrap(),
                revision: Revision(1),
                state: State::Live,
                body: Body::from_fields(body.as_object().unwrap()),
            })
        });
        let loaded = Snapshot::load(BUILT_IN.clone(), Point::default(), documents).unwrap();
        prop_assert_eq!(answers(&at_once), answers(&loaded));
        prop_assert_eq!(at_once.problems().collect::<Vec<_>>(), loaded.problems().collect::<Vec<_>>());
    }

    #[test]
    fn clusters_that_change_at_once_are_what_they_would_be_one_by_one(
        catalogue in catalogue(), clusters in clusters(), changed in clusters(),
    ) {
        let before = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        let at_once = after(&before, &json!({"clusters": changed}));
        let changes = changed.as_object().unwrap().iter();
        let one_by_one = changes.fold(before, |fleet, (id, body)| after(&fleet, &json!({"clusters": {id: body}})));
        prop_assert_eq!(answers(&at_once), answers(&one_by_one));
        prop_assert_eq!(at_once.problems().collect::<Vec<_>>(), one_by_one.problems().collect::<Vec<_>>());
        let ty = at_once.registry().by_path("platform-components").unwrap();
        for id in COMPONENTS.map(|id| Id::parse(id).unwrap()) {
            let refers = |cluster: &&Value| cluster["platform_components"].as_array().unwrap().iter().any(|it| it["id"] == id.as_str());
            prop_assert_eq!(at_once.referrers(ty, &id).count(), changed.as_object().unwrap().values().filter(refers).count());
            prop_assert_eq!(at_once.referrers(ty, &id).count(), one_by_one.referrers(ty, &id).count());
        }
    }

    #[test]
    fn served_values_are_what_the_patches_mean(
        patches in proptest::collection::btree_map("[a-cA_]{1,2}(\\.[ab]|\\[0\\]|\\\\.|\"|é)?", patch_value(), 0..5),
    ) {
        let patches: model::Map = patches.into_iter().collect();
        let body = cluster("c0.example", &json!({"platform_components": [{"id": "a"}], "patches": {"a": patches}}));
        let fleet = fleet_of(&json!({"platform_components": {"a": {"component_path": "p"}}, "clusters": {"c0": body}}));
        let mut kept = patches;
        model::prune_nulls(&mut kept);
        match (model::helm::expand(&kept), poll(&fleet, "c0.example", "platform-components")) {
            (Ok(values), Ok(answer)) => {
                prop_assert_eq!(&answer["inputs"][0]["values"], &Value::Object(values));
                prop_assert_eq!(&answer["inputs"][0]["patches"], &Value::Object(kept));
            }
            (Err(_), Err(fleet::Refusal::Patch { .. })) => {}
            (meant, served) => prop_assert!(false, "{meant:?} is served as {served:?}"),
        }
    }

    #[test]
    fn no_answer_holds_a_null_that_its_author_did_not_ask_helm_for(catalogue in catalogue(), clusters in clusters()) {
        let fleet = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        for cluster in fleet.clusters() {
            let ty = fleet.registry().by_path("platform-components").unwrap();
            let body = match fleet.inputs(cluster, ty, Empty::Explicit) {
                Err(fleet::Refusal::NoDefinitions { .. }) => continue,
                body => body.unwrap(),
            };
            let mut answer: Value = serde_json::from_slice(body.as_ref()).unwrap();
            for input in answer["inputs"].as_array_mut().unwrap() {
                // `--set list[1]=x` leaves a null at list[0]: Helm's rule, and lists keep theirs on the way.
                input.as_object_mut().unwrap().remove("values");
            }
            prop_assert!(!has_null(&answer), "{}", answer);
        }
    }
}
