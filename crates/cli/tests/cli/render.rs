//! The manifests that clusters make of their inputs, by the real Flux Operator's tool. It takes Go to build it, so these
//! have a lane of their own: `make render`.

use std::fs;

use insta::assert_snapshot;

use crate::stage::Stage;

fn render(stage: &Stage, arguments: &[&str]) -> String {
    let program = std::env::var("FLUX_OPERATOR").expect("FLUX_OPERATOR is set by make render");
    stage.run(&[&["render", "demo-cluster-01", "--flux-operator", &program], arguments].concat()).good().out
}

#[test]
fn the_demo_is_rendered() {
    let stage = Stage::demo();
    assert_snapshot!("render-namespaces", render(&stage, &["namespaces"]));
    assert_snapshot!("render-rolebindings", render(&stage, &["rolebindings"]));
    assert_snapshot!("render-platform-components", render(&stage, &["platform-components"]));
    let kinds = render(&stage, &[]).lines().filter(|line| line.starts_with("kind: ")).count();
    assert_eq!(kinds, 3 + 2 + 3 * 3 + 2, "everything at once");
}

#[test]
fn an_artifact_becomes_a_kustomization_and_hostile_values_stay_values() {
    let stage = Stage::demo();
    let create = [
        "component",
        "create",
        "core",
        "--component-path",
        "core/1.0.0",
        "--oci-url",
        "oci://registry.example/platform",
        "--oci-tag",
        "v1.0.0",
        "--cluster-env-enabled",
        "--cluster",
        "demo-cluster-01",
    ];
    stage.run(&create).good();
    let hostile = "a: b, \"c\" 'd' {{ e }} << f >> # g\nh";
    for component in ["core", "podinfo"] {
        let set = format!("message={hostile}");
        stage.run(&["component", "patch", component, "--cluster", "demo-cluster-01", "--set", &set]).good();
    }
    stage.run(&["component", "unassign", "traefik", "--cluster", "demo-cluster-01"]).good();
    stage.run(&["component", "unassign", "cert-manager", "--cluster", "demo-cluster-01"]).good();
    assert_snapshot!("render-hostile", render(&stage, &["component"]));
}

#[test]
fn a_chart_in_a_registry_becomes_a_release_with_credentials() {
    let stage = Stage::demo();
    for name in ["traefik", "podinfo", "cert-manager"] {
        stage.run(&["component", "unassign", name, "--cluster", "demo-cluster-01"]).good();
    }
    for (name, tag, version) in
        [("pinned", "1.2.3", "latest"), ("versioned", "latest", "1.0.0"), ("newest", "latest", "latest")]
    {
        let create =
            ["component", "create", name, "--component-path", "app", "--oci-url", "oci://registry.example/charts"];
        let more = ["--oci-tag", tag, "--component-version", version, "--cluster", "demo-cluster-01"];
        let source = ["--oci-content", "chart", "--oci-insecure", "--oci-secret", "pull-secret"];
        stage.run(&[&create[..], &more, &source].concat()).good();
    }
    assert_snapshot!("render-registry-charts", render(&stage, &["component"]));
}

#[test]
fn components_of_one_source_share_it() {
    let stage = Stage::demo();
    let charts = [
        "component",
        "create",
        "second",
        "--component-path",
        "other",
        "--oci-url",
        "https://stefanprodan.github.io/podinfo/",
    ];
    stage.run(&[&charts[..], &["--cluster", "demo-cluster-01"]].concat()).good();
    let rendered = render(&stage, &["component"]);
    let repositories = rendered.lines().filter(|line| *line == "kind: HelmRepository").count();
    assert_eq!(repositories, 3, "four components, three URLs:\n{rendered}");
}

#[test]
fn a_cluster_that_has_nothing_renders_nothing() {
    let stage = Stage::demo();
    let disabled = "platform_components: [{id: traefik, enabled: false}, {id: podinfo, enabled: false}, {id: cert-manager, enabled: false}]";
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", disabled, "--yes"]).good();
    assert_eq!(render(&stage, &["platform-components"]), "");
}

#[test]
fn an_added_type_brings_its_template() {
    let example = |path: &str| fs::read_to_string(harness::repository(path)).unwrap();
    let types = tempfile::tempdir().unwrap();
    let (plain, template) =
        ("docs/examples/resources/network_policy.yaml", "docs/examples/network_policy_template.yaml");
    fs::write(types.path().join("np.yaml"), example(plain) + &example(template)).unwrap();
    let seed = harness::repository("data/seed.json");
    let settings = [("RESOURCES_DIR", types.path().to_str().unwrap()), ("SEED_FILE", seed.to_str().unwrap())];
    let stage = Stage::with(&settings);
    let rules = r#"ingress_rules=[{"from_namespace": "prometheus", "port": 9090}]"#;
    let create =
        ["create", "network_policy", "allow-monitoring", "--field", "target_namespace=monitoring", "--field", rules];
    stage.run(&[&create[..], &["--cluster", "demo-cluster-01"]].concat()).good();
    assert_snapshot!("render-network-policies", render(&stage, &["network-policies"]));
}
