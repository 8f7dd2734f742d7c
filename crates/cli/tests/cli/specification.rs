//! The commands of the specification's chapter "CLI Usage", as they are written there.

use insta::assert_snapshot;

use crate::environment::{CommandResult, TestEnvironment, with_stable_values};

/// Every example that needs no cluster, in the order of the chapter.
const EXAMPLES: &str = r##"
flux-resourceset-cli cluster list

flux-resourceset-cli cluster get demo-cluster-01

flux-resourceset-cli namespace list

flux-resourceset-cli namespace get cert-manager

flux-resourceset-cli namespace create team-sandbox --cluster demo-cluster-01 \
  --label team=sandbox --annotation owner=platform

flux-resourceset-cli namespace assign team-sandbox --cluster demo-cluster-01

flux-resourceset-cli namespace unassign team-sandbox --cluster demo-cluster-01

flux-resourceset-cli component list

flux-resourceset-cli component get cert-manager

flux-resourceset-cli component create cert-manager \
  --component-path core/cert-manager/1.14.0 \
  --component-version 1.14.0 \
  --oci-url oci://registry.example/platform-components \
  --oci-tag v1.0.0 \
  --cluster demo-cluster-01

flux-resourceset-cli component assign cert-manager --cluster demo-cluster-01

flux-resourceset-cli component patch podinfo --cluster demo-cluster-01 --set replicaCount=3

flux-resourceset-cli demo add-namespace demo-cluster-01 demo-runtime \
  --label team=platform \
  --annotation owner=you

flux-resourceset-cli demo patch-component demo-cluster-01 podinfo \
  --set replicaCount=3 \
  --set ui.message="Hello" \
  --set ui.color="#3b82f6"

flux-resourceset-cli demo flux-namespaces demo-cluster-01.k8s.example.com

flux-resourceset-cli cluster list | jq .

flux-resourceset-cli namespace list | jq .

flux-resourceset-cli demo patch-component demo-cluster-01 podinfo \
  --set replicaCount=3 \
  --set ui.message="Hello from CLI patch" \
  --set ui.color="#3b82f6" | jq .

flux-resourceset-cli namespace create team-sandbox --cluster demo-cluster-01 \
  --label team=sandbox --annotation owner=platform

flux-resourceset-cli demo patch-component demo-cluster-01 podinfo --set replicaCount=5
"##;

#[test]
fn every_example_of_the_specification_works() {
    let env = TestEnvironment::demo();
    for (at, example) in EXAMPLES.split("\n\n").map(str::trim).enumerate() {
        let CommandResult { out, err, .. } = env.shell(example).success();
        let output = format!("$ {example}\n{out}{err}");
        with_stable_values(|| assert_snapshot!(format!("example-{at:02}"), output));
    }
}

#[test]
fn an_example_that_breaks_a_dependency_is_refused_until_the_dependant_is_unassigned() {
    let env = TestEnvironment::demo();
    let example = "flux-resourceset-cli component unassign cert-manager --cluster demo-cluster-01";
    let refused = env.shell(example);
    assert_eq!(refused.code, 1);
    assert_snapshot!("unassign-refused", refused.err);
    env.run(&["component", "unassign", "traefik", "--cluster", "demo-cluster-01"]).success();
    env.shell(example).success();
}

#[test]
fn flux_gets_the_changes_of_the_examples() {
    let env = TestEnvironment::demo();
    env.run(&["namespace", "create", "team-sandbox", "--cluster", "demo-cluster-01", "--label", "team=sandbox"])
        .success();
    assert_eq!(env.revision(), 2, "the namespace and its reference are one change");
    env.run(&["demo", "patch-component", "demo-cluster-01", "podinfo", "--set", "replicaCount=5"]).success();
    let namespaces = env.run(&["demo", "flux-namespaces", "demo-cluster-01.k8s.example.com"]).json();
    assert_eq!(namespaces["inputs"][3]["id"], "team-sandbox");
    let components = env.run(&["inputs", "demo-cluster-01", "component"]).json();
    assert_eq!(components["inputs"][2]["values"]["replicaCount"], 5);
}
