//! Where each value of an input comes from; and that this is what is served, byte for byte.

use fleet::{Empty, Snapshot};
use model::{ExplainedField, Explanation, Id, SourceKind, Value};
use proptest::{prelude::*, sample::select};
use serde_json::json;

use crate::{
    after, cluster, component, fleet_of,
    laws::{CLUSTERS, COMPONENTS, catalogue, clusters},
};

fn explain(fleet: &Snapshot, dns: &str, path: &str, id: &str) -> Option<Explanation> {
    let ty = fleet.registry().by_path(path).unwrap();
    fleet.explain(fleet.cluster_at(dns).unwrap(), ty, &Id::parse(id).unwrap()).unwrap()
}

#[test]
fn every_value_has_a_source_and_the_values_that_it_hides() {
    let fleet = fleet_of(&json!({"platform_components": {
        "base": component("https://charts.example", &[]),
        "app": {"component_path": "p", "oci_url": "https://charts.example", "oci_tag": "v1", "depends_on": ["base"]}
    }}));
    let fleet = after(
        &fleet,
        &json!({"clusters": {"demo": cluster("demo.example", &json!({
            "platform_components": [{"id": "base"}, {"id": "app", "oci_tag": "v2", "enabled": true, "component_path": null}],
            "patches": {"app": {"replicaCount": "3", "a/b": "x"}}
        }))}}),
    );
    let explanation = explain(&fleet, "demo.example", "platform-components", "app").unwrap();
    // By the library that answers are written with: it knows values that are JSON already.
    insta::assert_json_snapshot!(serde_json::to_value(explanation).unwrap());
}

#[test]
fn what_a_cluster_is_not_served_is_not_explained() {
    let fleet = fleet_of(&json!({"namespaces": {"a": {}, "b": {}},
        "clusters": {"demo": cluster("demo.example", &json!({"namespaces": [{"id": "a"}, {"id": "gone"}]}))}}));
    assert!(explain(&fleet, "demo.example", "namespaces", "a").is_some());
    assert!(explain(&fleet, "demo.example", "namespaces", "b").is_none(), "the cluster does not refer to it");
    assert!(explain(&fleet, "demo.example", "namespaces", "gone").is_none(), "it is not defined");
    let twice = cluster("demo.example", &json!({"namespaces": [{"id": "a"}, {"id": "a"}]}));
    let fleet = after(&fleet, &json!({"clusters": {"demo": twice}}));
    let ty = fleet.registry().by_path("namespaces").unwrap();
    let refusal = fleet.explain(fleet.cluster_at("demo.example").unwrap(), ty, &Id::parse("a").unwrap()).unwrap_err();
    assert_eq!(refusal.code(), "duplicate-input", "what is refused to a poll is not explained");
}

/// The input that explained values come to, as JSON text.
fn rebuilt(fields: &[ExplainedField]) -> String {
    // Fields of one object follow on one another, and objects are not deeper than one level.
    let mut text = String::from("{");
    let mut open = "";
    for field in fields {
        let steps: Vec<_> = field.pointer.split('/').skip(1).collect();
        let object = if steps.len() > 1 { steps[0] } else { "" };
        if object != open {
            text.push_str(if open.is_empty() { "" } else { "}" });
        }
        let is_first = text.ends_with('{');
        text.push_str(if is_first { "" } else { "," });
        if object != open && !object.is_empty() {
            text.extend([&*Value::from(object).to_string(), ":{"]);
        }
        open = object;
        let name = steps[steps.len() - 1].replace("~1", "/").replace("~0", "~");
        text.extend([&*Value::from(name).to_string(), ":", field.value.get()]);
    }
    text + if open.is_empty() { "}" } else { "}}" }
}

proptest! {
    #[test]
    fn an_input_is_the_values_that_are_explained(
        catalogue in catalogue(), clusters in clusters(), number in select(vec!["1.5", "0", "1e300", "-3"]),
    ) {
        let mut clusters = clusters;
        for cluster in clusters.as_object_mut().unwrap().values_mut() {
            cluster["patches"]["b"]["odd/~key"] = serde_json::from_str(number).unwrap();
        }
        let fleet = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        let ty = fleet.registry().by_path("platform-components").unwrap();
        for cluster in CLUSTERS.map(|id| fleet.cluster(&Id::parse(id).unwrap()).unwrap()) {
            let Ok(answer) = fleet.inputs(cluster, ty, Empty::Bare) else {
                let explained = fleet.explain(cluster, ty, &Id::parse("a").unwrap());
                prop_assert!(explained.is_err(), "a poll is refused");
                continue;
            };
            let explained = |id: &str| fleet.explain(cluster, ty, &Id::parse(id).unwrap()).unwrap();
            let served: Value = serde_json::from_slice(answer.as_ref()).unwrap();
            let inputs: Vec<_> = served["inputs"].as_array().unwrap().iter().map(|input| {
                let explanation = explained(input["id"].as_str().unwrap()).unwrap();
                for field in &explanation.fields {
                    assert!(field.hidden.iter().all(|hidden| hidden.source.kind != field.source.kind));
                    assert_eq!(field.source.document.is_none(), matches!(field.source.kind, SourceKind::Default | SourceKind::Computed));
                }
                rebuilt(&explanation.fields)
            }).collect();
            let rebuilt = format!("{{\"inputs\":[{}]}}", inputs.join(","));
            prop_assert_eq!(rebuilt.as_bytes(), answer.as_ref());
            let is_served = |id: &&str| served["inputs"].as_array().unwrap().iter().any(|input| input["id"] == **id);
            for id in COMPONENTS.iter().filter(|id| !is_served(id)) {
                prop_assert!(explained(id).is_none());
            }
        }
    }
}
