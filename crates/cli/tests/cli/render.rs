//! `render` with the real command line program of Flux Operator. Building it needs Go, so these tests run separately:
//! `make render`.

use std::fs;

use insta::assert_snapshot;

use crate::environment::TestEnvironment;

fn render(env: &TestEnvironment, arguments: &[&str]) -> String {
    let program = std::env::var("FLUX_OPERATOR").expect("FLUX_OPERATOR is set by make render");
    env.run(&[&["render", "demo-cluster-01", "--flux-operator", &program], arguments].concat()).success().out
}

#[test]
fn the_demo_is_rendered() {
    let env = TestEnvironment::demo();
    assert_snapshot!("render-namespaces", render(&env, &["namespaces"]));
    assert_snapshot!("render-rolebindings", render(&env, &["rolebindings"]));
    assert_snapshot!("render-platform-components", render(&env, &["platform-components"]));
    let kinds = render(&env, &[]).lines().filter(|line| line.starts_with("kind: ")).count();
    assert_eq!(kinds, 3 + 2 + 3 * 3 + 2, "everything at once");
}

#[test]
fn an_artifact_becomes_a_kustomization_and_special_characters_are_escaped() {
    let env = TestEnvironment::demo();
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
    env.run(&create).success();
    let hostile = "a: b, \"c\" 'd' {{ e }} << f >> # g\nh";
    for component in ["core", "podinfo"] {
        let set = format!("message={hostile}");
        env.run(&["component", "patch", component, "--cluster", "demo-cluster-01", "--set", &set]).success();
    }
    env.run(&["component", "unassign", "traefik", "--cluster", "demo-cluster-01"]).success();
    env.run(&["component", "unassign", "cert-manager", "--cluster", "demo-cluster-01"]).success();
    assert_snapshot!("render-hostile", render(&env, &["component"]));
}

#[test]
fn a_chart_in_a_registry_becomes_a_release_with_credentials() {
    let env = TestEnvironment::demo();
    for name in ["traefik", "podinfo", "cert-manager"] {
        env.run(&["component", "unassign", name, "--cluster", "demo-cluster-01"]).success();
    }
    for (name, tag, version) in
        [("pinned", "1.2.3", "latest"), ("versioned", "latest", "1.0.0"), ("newest", "latest", "latest")]
    {
        let create =
            ["component", "create", name, "--component-path", "app", "--oci-url", "oci://registry.example/charts"];
        let more = ["--oci-tag", tag, "--component-version", version, "--cluster", "demo-cluster-01"];
        let source = ["--oci-content", "chart", "--oci-insecure", "--oci-secret", "pull-secret"];
        env.run(&[&create[..], &more, &source].concat()).success();
    }
    assert_snapshot!("render-registry-charts", render(&env, &["component"]));
}

#[test]
fn components_of_one_source_share_it() {
    let env = TestEnvironment::demo();
    let charts = [
        "component",
        "create",
        "second",
        "--component-path",
        "other",
        "--oci-url",
        "https://stefanprodan.github.io/podinfo/",
    ];
    env.run(&[&charts[..], &["--cluster", "demo-cluster-01"]].concat()).success();
    let rendered = render(&env, &["component"]);
    let repositories = rendered.lines().filter(|line| *line == "kind: HelmRepository").count();
    assert_eq!(repositories, 3, "four components, three URLs:\n{rendered}");
}

#[test]
fn a_cluster_without_inputs_renders_nothing() {
    let env = TestEnvironment::demo();
    let disabled = "platform_components: [{id: traefik, enabled: false}, {id: podinfo, enabled: false}, {id: cert-manager, enabled: false}]";
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", disabled, "--yes"]).success();
    assert_eq!(render(&env, &["platform-components"]), "");
}

#[test]
fn an_added_type_is_rendered_with_its_template() {
    let example = |path: &str| fs::read_to_string(harness::repository(path)).unwrap();
    let types = tempfile::tempdir().unwrap();
    let (plain, template) =
        ("docs/examples/resources/network_policy.yaml", "docs/examples/network_policy_template.yaml");
    fs::write(types.path().join("np.yaml"), example(plain) + &example(template)).unwrap();
    let seed = harness::repository("data/seed.json");
    let settings = [("RESOURCES_DIR", types.path().to_str().unwrap()), ("SEED_FILE", seed.to_str().unwrap())];
    let env = TestEnvironment::with_settings(&settings);
    let rules = r#"ingress_rules=[{"from_namespace": "prometheus", "port": 9090}]"#;
    let create =
        ["create", "network_policy", "allow-monitoring", "--field", "target_namespace=monitoring", "--field", rules];
    env.run(&[&create[..], &["--cluster", "demo-cluster-01"]].concat()).success();
    assert_snapshot!("render-network-policies", render(&env, &["network-policies"]));
}
