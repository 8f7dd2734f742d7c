//! The commands of the specification's chapter "CLI Usage", as they are written there.

use insta::assert_snapshot;

use crate::stage::{Done, Stage, settled};

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
fn every_example_of_the_specification_works_as_it_is_written() {
    let stage = Stage::demo();
    for (at, example) in EXAMPLES.split("\n\n").map(str::trim).enumerate() {
        let Done { out, err, .. } = stage.shell(example).good();
        let told = format!("$ {example}\n{out}{err}");
        settled(|| assert_snapshot!(format!("example-{at:02}"), told));
    }
}

#[test]
fn an_example_that_would_break_the_demo_says_why_and_works_once_it_would_not() {
    let stage = Stage::demo();
    let example = "flux-resourceset-cli component unassign cert-manager --cluster demo-cluster-01";
    let refused = stage.shell(example);
    assert_eq!(refused.code, 1);
    assert_snapshot!("unassign-refused", refused.err);
    stage.run(&["component", "unassign", "traefik", "--cluster", "demo-cluster-01"]).good();
    stage.shell(example).good();
}

#[test]
fn what_the_examples_change_is_what_flux_gets() {
    let stage = Stage::demo();
    stage
        .run(&["namespace", "create", "team-sandbox", "--cluster", "demo-cluster-01", "--label", "team=sandbox"])
        .good();
    assert_eq!(stage.revision(), 2, "the namespace and its place on the cluster are one change");
    stage.run(&["demo", "patch-component", "demo-cluster-01", "podinfo", "--set", "replicaCount=5"]).good();
    let namespaces = stage.run(&["demo", "flux-namespaces", "demo-cluster-01.k8s.example.com"]).json();
    assert_eq!(namespaces["inputs"][3]["id"], "team-sandbox");
    let components = stage.run(&["inputs", "demo-cluster-01", "component"]).json();
    assert_eq!(components["inputs"][2]["values"]["replicaCount"], 5);
}
