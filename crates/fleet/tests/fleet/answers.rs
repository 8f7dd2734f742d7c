//! The merge and the shapes of its answers.

use fleet::{Empty, Part, Refusal};
use model::Value;
use serde_json::json;

use crate::{after, cluster, component, fleet_of, poll, poll_as};

/// The documents of the specification's merge example.
fn example() -> Value {
    json!({
        "platform_components": {
            "cert-manager": {"component_path": "core/cert-manager/1.14.0", "oci_url": "oci://registry/repo", "oci_tag": "v1.0.0", "depends_on": []},
            "grafana": {"component_path": "observability/grafana/17.0.0", "oci_url": "oci://registry/repo", "oci_tag": "v1.0.0", "depends_on": ["cert-manager"]}
        },
        "clusters": {"us-east-prod-01": {
            "cluster_name": "us-east-prod-01", "cluster_dns": "us-east-prod-01.k8s.example.com", "environment": "prod",
            "platform_components": [
                {"id": "cert-manager", "enabled": true, "oci_tag": null, "component_path": null},
                {"id": "grafana", "enabled": true, "oci_tag": "v1.0.0-1", "component_path": "observability/grafana/17.1.0"}
            ],
            "patches": {"grafana": {"GRAFANA_REPLICAS": "3"}}
        }}
    })
}

#[test]
fn the_merge_example_of_the_specification_gives_its_json_field_by_field() {
    let answer = poll(&fleet_of(&example()), "us-east-prod-01.k8s.example.com", "platform-components").unwrap();
    let expected = json!({"inputs": [
        {
            "id": "cert-manager",
            "component_path": "core/cert-manager/1.14.0",
            "source": {"oci_url": "oci://registry/repo", "oci_tag": "v1.0.0"},
            "patches": {},
            "cluster": {"name": "us-east-prod-01", "dns": "us-east-prod-01.k8s.example.com", "environment": "prod"}
        },
        {
            "id": "grafana",
            "component_path": "observability/grafana/17.1.0",
            "source": {"oci_url": "oci://registry/repo", "oci_tag": "v1.0.0-1"},
            "depends_on": ["cert-manager"],
            "patches": {"GRAFANA_REPLICAS": "3"},
            "cluster": {"name": "us-east-prod-01", "dns": "us-east-prod-01.k8s.example.com", "environment": "prod"}
        }
    ]});
    let (expected, inputs) = (expected["inputs"].as_array().unwrap(), answer["inputs"].as_array().unwrap());
    assert_eq!(inputs.len(), expected.len());
    for (input, expected) in inputs.iter().zip(expected) {
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&input[field], value, "{field}");
        }
    }
    // What the example leaves out is in the API reference's table of fields.
    insta::assert_json_snapshot!(answer);
}

#[test]
fn namespaces_and_rolebindings_have_the_shapes_of_the_reference() {
    let fleet = fleet_of(&json!({
        "namespaces": {"cert-manager": {"labels": {"app": "cert-manager"}, "annotations": {}}, "bare": {"labels": null}},
        "rolebindings": {"platform-admins": {"role": "cluster-admin", "subjects": [
            {"kind": "Group", "name": "platform-team", "apiGroup": "rbac.authorization.k8s.io"}]}},
        "clusters": {"demo": cluster("demo.example", &json!({
            "namespaces": [{"id": "cert-manager"}, {"id": "bare"}], "rolebindings": [{"id": "platform-admins"}]}))}
    }));
    let cluster = json!({"name": "demo", "dns": "demo.example", "environment": "dev"});
    assert_eq!(
        poll(&fleet, "demo.example", "namespaces").unwrap(),
        json!({"inputs": [
            {"id": "cert-manager", "labels": {"app": "cert-manager"}, "annotations": {}, "cluster": cluster},
            {"id": "bare", "labels": {}, "annotations": {}, "cluster": cluster}
        ]})
    );
    assert_eq!(
        poll(&fleet, "demo.example", "rolebindings").unwrap(),
        json!({"inputs": [{
            "id": "platform-admins", "role": "cluster-admin",
            "subjects": [{"kind": "Group", "name": "platform-team", "apiGroup": "rbac.authorization.k8s.io"}],
            "cluster": cluster
        }]})
    );
}

#[test]
fn inputs_come_in_the_order_of_the_references() {
    let fleet = fleet_of(&json!({
        "namespaces": {"a": {}, "b": {}, "c": {}},
        "clusters": {"demo": cluster("demo.example", &json!({"namespaces": [{"id": "c"}, {"id": "a"}, {"id": "b"}]}))}
    }));
    let answer = poll(&fleet, "demo.example", "namespaces").unwrap();
    let ids: Vec<_> = answer["inputs"].as_array().unwrap().iter().map(|input| input["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c", "a", "b"]);
}

#[test]
fn patches_are_served_flat_and_as_typed_values() {
    let fleet = fleet_of(&json!({
        "platform_components": {"podinfo": component("https://charts.example", &[])},
        "clusters": {"demo": cluster("demo.example", &json!({
            "platform_components": [{"id": "podinfo"}],
            "patches": {
                "podinfo": {"replicaCount": "3", "ui.color": "#fff", "gone": null, "hosts[0].name": "a,b", "on": "TRUE", "f": 1.5},
                "unassigned": {"x": "1"}
            }}))}
    }));
    let input = &poll(&fleet, "demo.example", "platform-components").unwrap()["inputs"][0];
    assert_eq!(
        input["patches"],
        json!({"replicaCount": "3", "ui.color": "#fff", "hosts[0].name": "a,b", "on": "TRUE", "f": 1.5})
    );
    assert_eq!(
        input["values"],
        json!({"replicaCount": 3, "ui": {"color": "#fff"}, "hosts": [{"name": "a,b"}], "on": true, "f": 1.5})
    );
    assert_eq!(input["enabled"], json!(true), "a reference is enabled unless it says otherwise");
}

#[test]
fn only_dependencies_that_flux_can_keep_are_effective() {
    let (helm, oci) = ("https://charts.example", "oci://registry/repo");
    let mut chart = component(oci, &[]);
    chart["oci_content"] = json!("chart");
    let fleet = fleet_of(&json!({
        "platform_components": {
            "base": component(helm, &[]),
            "other-kind": component(oci, &[]),
            "chart": chart,
            "disabled": component(helm, &[]),
            "unassigned": component(helm, &[]),
            "circle-a": component(helm, &["circle-b", "base"]),
            "circle-b": component(helm, &["circle-a"]),
            "selfish": component(helm, &["selfish"]),
            "app": component(helm, &["base", "other-kind", "chart", "disabled", "unassigned", "undefined", "circle-a", "base"])
        },
        "clusters": {"demo": cluster("demo.example", &json!({"platform_components": [
            {"id": "base"}, {"id": "other-kind"}, {"id": "chart"}, {"id": "disabled", "enabled": false},
            {"id": "circle-a"}, {"id": "circle-b"}, {"id": "selfish"}, {"id": "app"}]}))}
    }));
    let answer = poll(&fleet, "demo.example", "platform-components").unwrap();
    let effective: Vec<_> = answer["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| (input["id"].as_str().unwrap(), input["effective_depends_on"].clone()))
        .filter(|(_, list)| list != &json!([]))
        .collect();
    assert_eq!(effective, [("circle-a", json!(["base"])), ("app", json!(["base", "chart", "circle-a"]))]);
}

#[test]
fn the_clusters_themselves_are_listed_without_the_decommissioned() {
    let fleet = fleet_of(&example());
    let fleet = after(&fleet, &json!({"clusters": {"b": cluster("b.example", &json!({"node_count": 3}))}}));
    let fleet = after(&fleet, &json!({"clusters": {"us-east-prod-01": [example()["clusters"]["us-east-prod-01"]]}}));
    let ty = fleet.registry().by_kind("cluster").unwrap();
    let body = fleet.cluster_inputs(ty, &Part::default(), Empty::Bare).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(body.as_ref()).unwrap(),
        json!({"inputs": [{"id": "b", "cluster_name": "b", "cluster_dns": "b.example", "environment": "dev"}]})
    );
    let fleet = after(&fleet, &json!({"clusters": {"b": [cluster("b.example", &json!({}))]}}));
    assert_eq!(fleet.cluster_inputs(ty, &Part::default(), Empty::Bare).unwrap().as_ref(), br#"{"inputs":[]}"#);
    assert_eq!(
        fleet.cluster_inputs(ty, &Part::default(), Empty::Explicit).unwrap().as_ref(),
        br#"{"inputs":[{"id":"none","none":true}]}"#
    );
}

#[test]
fn a_blank_fleet_is_not_an_empty_list() {
    let fleet = fleet_of(&json!({}));
    let ty = fleet.registry().by_kind("cluster").unwrap();
    assert!(matches!(fleet.cluster_inputs(ty, &Part::default(), Empty::Bare), Err(Refusal::BlankFleet)));
}

#[test]
fn emptiness_is_said_by_a_record_where_asked() {
    let fleet = fleet_of(&json!({"clusters": {"demo": cluster("Demo.Example", &json!({}))}}));
    assert_eq!(poll(&fleet, "demo.example", "namespaces").unwrap(), json!({"inputs": []}));
    assert_eq!(
        poll_as(&fleet, "demo.example", "namespaces", Empty::Explicit).unwrap(),
        json!({"inputs": [{"id": "none", "none": true,
            "cluster": {"name": "Demo", "dns": "Demo.Example", "environment": "dev"}}]})
    );
}
