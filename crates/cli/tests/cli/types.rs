//! The commands on every type, including added types.

use insta::assert_snapshot;
use serde_json::json;

use crate::environment::{TestEnvironment, with_stable_values};

fn environment() -> TestEnvironment {
    let types = harness::repository("docs/examples/resources");
    TestEnvironment::with_settings(&[
        ("RESOURCES_DIR", types.to_str().unwrap()),
        ("SEED_FILE", harness::repository("data/seed.json").to_str().unwrap()),
    ])
}

#[test]
fn an_added_type_supports_every_command() {
    let env = environment();
    let rules = r#"ingress_rules=[{"from_namespace": "prometheus", "port": 9090}]"#;
    let create =
        ["create", "network_policy", "allow-monitoring", "--field", "target_namespace=monitoring", "--field", rules];
    env.run(&create).success();
    for name in ["network_policy", "network-policies", "network_policies", "policy", "Network-Policy"] {
        assert_eq!(env.run(&["list", name, "-o", "name"]).out, "network_policy/allow-monitoring\n", "{name}");
    }
    let table = env.run(&["get", "network-policy", "allow-monitoring", "-o", "table"]).success();
    assert_snapshot!("added-type", table.out);
    env.run(&["assign", "network_policy", "allow-monitoring", "--cluster", "demo-cluster-01"]).success();
    let inputs = env.run(&["inputs", "demo-cluster-01", "network-policies"]).json();
    assert_eq!(inputs["inputs"][0]["ingress_rules"], json!([{"from_namespace": "prometheus", "port": 9090}]));
    env.run(&["patch", "network_policy", "allow-monitoring", "-p", "target_namespace: observability"]).success();
    env.run(&["revert", "network_policy", "allow-monitoring"]).success();
    let policy = env.run(&["get", "network_policy", "allow-monitoring"]).json();
    assert_eq!(policy["target_namespace"], "monitoring");
    let history = env.run(&["history", "network_policy", "allow-monitoring", "-o", "table"]).success();
    with_stable_values(|| assert_snapshot!("added-type-history", history.out));
    env.run(&["unassign", "network_policy", "allow-monitoring", "--cluster", "demo-cluster-01"]).success();
    env.run(&["delete", "network_policy", "allow-monitoring"]).success();
    assert_eq!(env.run(&["get", "network_policy", "allow-monitoring"]).code, 3);
    let wrong = env.run(&["create", "network_policy", "x", "--field", "colour=red"]);
    assert!(
        wrong.code == 2 && wrong.err.contains("its fields are id, target_namespace, ingress_rules"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_document_is_created_from_a_file_with_its_references() {
    let env = environment();
    let file = env.file("np.yaml", "kind: network_policy\nid: np\ntarget_namespace: web\ningress_rules: []\n");
    env.run(&["create", "network_policy", "-f", &file, "--cluster", "demo-cluster-01"]).success();
    assert_eq!(env.revision(), 2);
    assert_eq!(env.run(&["create", "namespace", "-f", &file]).code, 2, "the file contains another type");
    assert_eq!(env.run(&["create", "network_policy", "-f", &file]).code, 4, "the document exists");
}

#[test]
fn built_in_types_are_created_from_flags() {
    let env = environment();
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
        env.run(&cluster).success().json(),
        json!({
            "id": "eu-01", "cluster_name": "eu-01", "cluster_dns": "eu-01.example.com", "environment": "prod",
            "labels": {"region": "eu"}, "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "podinfo"}]
        })
    );
    let subjects =
        ["--subject", "Group:ops", "--subject", "User:ada", "--subject", "ServiceAccount:flux-system/deployer"];
    let binding = [&["rolebinding", "create", "ops", "--role", "edit", "--cluster", "eu-01"][..], &subjects].concat();
    env.run(&binding).success();
    let inputs = env.run(&["inputs", "eu-01", "rolebindings"]).json();
    let api = "rbac.authorization.k8s.io";
    assert_eq!(
        inputs["inputs"][0]["subjects"],
        json!([
            {"kind": "Group", "name": "ops", "apiGroup": api}, {"kind": "User", "name": "ada", "apiGroup": api},
            {"kind": "ServiceAccount", "name": "deployer", "namespace": "flux-system"}
        ])
    );
    assert_eq!(env.run(&["rolebinding", "create", "x", "--role", "r", "--subject", "ops"]).code, 2);
}

#[test]
fn assigning_an_assigned_document_changes_nothing() {
    let env = environment();
    let pinned = "platform_components: [{id: podinfo, oci_tag: v2, enabled: false}]";
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", pinned, "--yes"]).success();
    env.run(&["component", "assign", "podinfo", "--cluster", "demo-cluster-01"]).success();
    env.run(&["component", "create", "podinfo", "--oci-tag", "v9", "--cluster", "demo-cluster-01"]).success();
    assert_eq!(env.revision(), 2);
    let component = env.run(&["get", "component", "podinfo"]).json();
    assert_eq!(component["oci_tag"], "latest", "the definition is not changed, because other clusters use it");
}

#[test]
fn the_types_and_their_fields_are_shown() {
    let env = environment();
    assert_snapshot!("types", env.run(&["types", "-o", "table"]).success().out);
    assert_snapshot!("types-rolebinding", env.run(&["types", "rolebinding", "-o", "table"]).success().out);
}
