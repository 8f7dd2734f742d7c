//! The same verbs for every type, added ones included.

use insta::assert_snapshot;
use serde_json::json;

use crate::stage::{Stage, settled};

fn stage() -> Stage {
    let types = harness::repository("docs/examples/resources");
    Stage::with(&[
        ("RESOURCES_DIR", types.to_str().unwrap()),
        ("SEED_FILE", harness::repository("data/seed.json").to_str().unwrap()),
    ])
}

#[test]
fn an_added_type_has_every_verb() {
    let stage = stage();
    let rules = r#"ingress_rules=[{"from_namespace": "prometheus", "port": 9090}]"#;
    let create =
        ["create", "network_policy", "allow-monitoring", "--field", "target_namespace=monitoring", "--field", rules];
    stage.run(&create).good();
    for name in ["network_policy", "network-policies", "network_policies", "policy", "Network-Policy"] {
        assert_eq!(stage.run(&["list", name, "-o", "name"]).out, "network_policy/allow-monitoring\n", "{name}");
    }
    let table = stage.run(&["get", "network-policy", "allow-monitoring", "-o", "table"]).good();
    assert_snapshot!("added-type", table.out);
    stage.run(&["assign", "network_policy", "allow-monitoring", "--cluster", "demo-cluster-01"]).good();
    let inputs = stage.run(&["inputs", "demo-cluster-01", "network-policies"]).json();
    assert_eq!(inputs["inputs"][0]["ingress_rules"], json!([{"from_namespace": "prometheus", "port": 9090}]));
    stage.run(&["patch", "network_policy", "allow-monitoring", "-p", "target_namespace: observability"]).good();
    stage.run(&["revert", "network_policy", "allow-monitoring"]).good();
    let policy = stage.run(&["get", "network_policy", "allow-monitoring"]).json();
    assert_eq!(policy["target_namespace"], "monitoring");
    let history = stage.run(&["history", "network_policy", "allow-monitoring", "-o", "table"]).good();
    settled(|| assert_snapshot!("added-type-history", history.out));
    stage.run(&["unassign", "network_policy", "allow-monitoring", "--cluster", "demo-cluster-01"]).good();
    stage.run(&["delete", "network_policy", "allow-monitoring"]).good();
    assert_eq!(stage.run(&["get", "network_policy", "allow-monitoring"]).code, 3);
    let wrong = stage.run(&["create", "network_policy", "x", "--field", "colour=red"]);
    assert!(wrong.code == 2 && wrong.err.contains("it has id, target_namespace, ingress_rules"), "{}", wrong.err);
}

#[test]
fn a_document_is_created_from_a_file_with_its_references() {
    let stage = stage();
    let file = stage.file("np.yaml", "kind: network_policy\nid: np\ntarget_namespace: web\ningress_rules: []\n");
    stage.run(&["create", "network_policy", "-f", &file, "--cluster", "demo-cluster-01"]).good();
    assert_eq!(stage.revision(), 2);
    assert_eq!(stage.run(&["create", "namespace", "-f", &file]).code, 2, "it is no namespace");
    assert_eq!(stage.run(&["create", "network_policy", "-f", &file]).code, 4, "it is there");
}

#[test]
fn nouns_create_what_their_flags_say() {
    let stage = stage();
    let cluster = [
        "cluster",
        "create",
        "eu-01",
        "--dns",
        "eu-01.example.com",
        "--environment",
        "prod",
        "--label",
        "region=eu",
        "--assign",
        "component=podinfo",
        "--assign",
        "namespace=podinfo",
    ];
    assert_eq!(
        stage.run(&cluster).good().json(),
        json!({
            "id": "eu-01", "cluster_name": "eu-01", "cluster_dns": "eu-01.example.com", "environment": "prod",
            "labels": {"region": "eu"}, "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "podinfo"}]
        })
    );
    let subjects =
        ["--subject", "Group:ops", "--subject", "User:ada", "--subject", "ServiceAccount:flux-system/deployer"];
    let binding = [&["rolebinding", "create", "ops", "--role", "edit", "--cluster", "eu-01"][..], &subjects].concat();
    stage.run(&binding).good();
    let inputs = stage.run(&["inputs", "eu-01", "rolebindings"]).json();
    let api = "rbac.authorization.k8s.io";
    assert_eq!(
        inputs["inputs"][0]["subjects"],
        json!([
            {"kind": "Group", "name": "ops", "apiGroup": api}, {"kind": "User", "name": "ada", "apiGroup": api},
            {"kind": "ServiceAccount", "name": "deployer", "namespace": "flux-system"}
        ])
    );
    assert_eq!(stage.run(&["rolebinding", "create", "x", "--role", "r", "--subject", "ops"]).code, 2);
}

#[test]
fn giving_again_what_a_cluster_has_changes_nothing_about_it() {
    let stage = stage();
    let pinned = "platform_components: [{id: podinfo, oci_tag: v2, enabled: false}]";
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", pinned, "--yes"]).good();
    stage.run(&["component", "assign", "podinfo", "--cluster", "demo-cluster-01"]).good();
    stage.run(&["component", "create", "podinfo", "--oci-tag", "v9", "--cluster", "demo-cluster-01"]).good();
    assert_eq!(stage.revision(), 2);
    let component = stage.run(&["get", "component", "podinfo"]).json();
    assert_eq!(component["oci_tag"], "latest", "other clusters have it too");
}

#[test]
fn the_types_and_their_fields_are_shown() {
    let stage = stage();
    assert_snapshot!("types", stage.run(&["types", "-o", "table"]).good().out);
    assert_snapshot!("types-rolebinding", stage.run(&["types", "rolebinding", "-o", "table"]).good().out);
}
