//! Components that come from a registry.

use serde_json::{Value, json};

use super::{Scenario, scenario};
use crate::{
    kubectl::{Kubectl, is_ready},
    packages,
    world::{CLUSTER, World},
};

pub(super) const SCENARIOS: [Scenario; 2] = [
    scenario("artifacts", "overlay of the environment, variables, hotfix by tag, path upgrade, one source", artifacts),
    scenario("registry-chart", "a Helm chart in a registry", registry_chart),
];

fn artifacts(world: &mut World) {
    let before = world.document("cluster", CLUSTER);
    packages::push_artifact(&world.stack, "v1.0.0-1");
    assert_eq!(agent(world.kubectl()), json!({"version": "1.0.0", "build": "v1.0.0", "tier": "dev"}));

    let url = format!("oci://{}/platform", world.stack.registry);
    let create = ["component", "create", "settings", "--component-path", "core/settings/1.0.0", "--oci-url", &url];
    let more = ["--oci-tag", "v1.0.0", "--oci-insecure", "--depends-on", "agent"];
    world.change(&[&create[..], &more].concat());
    let message = "3 \"quoted\" 'c' \\ # ${NOT_A_VARIABLE} <&>\nsecond line";
    world.patch_cluster(&json!({
        "platform_components": [{"id": "settings"}], "patches": {"settings": {"MESSAGE": message, "COUNT": "2"}}
    }));
    world.until("the settings have their replicas", |kubectl| {
        kubectl.get(&["-n", "settings", "deployment", "settings"])["spec"]["replicas"] == 2
    });
    let settings = |kubectl: &Kubectl| kubectl.get(&["-n", "settings", "configmap", "settings"])["data"].clone();
    let data = settings(world.kubectl());
    world.log(&format!("the settings are {data}"));
    assert_eq!(data["message"], message, "a quoted variable arrives unchanged");
    assert_eq!(data["number"], "2");
    assert_eq!(data["cluster"], CLUSTER);
    assert_eq!(data["inside"], format!("tier dev of {CLUSTER}"));
    assert_eq!(sources(world.kubectl()), 1, "both share one source");
    let after = &world.kubectl().flux("kustomizations.kustomize.toolkit.fluxcd.io", "platform-settings")["spec"];
    assert_eq!(after["dependsOn"], json!([{"name": "platform-agent"}]));

    world.patch_cluster(&json!({"platform_components": [{"id": "agent", "oci_tag": "v1.0.0-1"}]}));
    world.until("the agent has the hotfix", |kubectl| agent(kubectl)["build"] == "v1.0.0-1");
    assert_eq!(settings(world.kubectl())["build"], "v1.0.0", "nothing else moved");
    assert_eq!(sources(world.kubectl()), 2, "one source for each tag");

    world.patch_cluster(&json!({"platform_components": [{"id": "agent", "component_path": "core/agent/1.1.0"}]}));
    world.until("the agent is of version 1.1.0", |kubectl| agent(kubectl)["version"] == "1.1.0");
    assert_eq!(agent(world.kubectl())["tier"], "dev");

    world.log("the cluster is as it was before");
    world.put("cluster", &before);
    world.until_deleted(&["namespace", "settings"]);
    world.until("the agent is as it was", |kubectl| {
        agent(kubectl)["version"] == "1.0.0" && agent(kubectl)["build"] == "v1.0.0"
    });
    world.until("one source is left", |kubectl| sources(kubectl) == 1);
    world.cli(&["component", "delete", "settings", "--yes"]);
}

fn registry_chart(world: &mut World) {
    let before = world.document("cluster", CLUSTER);
    packages::push_chart(&world.stack, "1.0.0");
    packages::push_chart(&world.stack, "1.2.0");
    let url = format!("oci://{}/charts", world.stack.registry);
    let create = ["component", "create", "boxed", "--oci-url", &url, "--component-path", "in-registry"];
    let more = ["--oci-content", "chart", "--oci-insecure", "--component-version", "1.0.x"];
    world.change(&[&create[..], &more].concat());
    world.patch_cluster(&json!({
        "platform_components": [{"id": "boxed"}], "patches": {"boxed": {"replicaCount": "2"}}
    }));
    let chart = |kubectl: &Kubectl| {
        let deployment = kubectl.get(&["-n", "boxed", "deployment", "boxed"]);
        (deployment["metadata"]["labels"]["chart"].clone(), deployment["spec"]["replicas"].clone())
    };
    world.until("the chart is installed with its values", |kubectl| chart(kubectl) == (json!("1.0.0"), json!(2)));
    world.patch_cluster(&json!({"platform_components": [{"id": "boxed", "oci_tag": "1.2.0"}]}));
    world.until("the cluster's own tag wins", |kubectl| chart(kubectl).0 == "1.2.0");
    world.until("the release is ready", |kubectl| is_ready(&kubectl.flux("helmrelease", "platform-boxed")));
    world.put("cluster", &before);
    world.until_deleted(&["-n", "flux-system", "helmrelease", "platform-boxed"]);
    world.kubectl().run(&["delete", "namespace", "boxed"]);
    world.cli(&["component", "delete", "boxed", "--yes"]);
}

fn agent(kubectl: &Kubectl) -> Value {
    kubectl.get(&["-n", "agent", "configmap", "agent"])["data"].clone()
}

/// How many sources of artifacts there are.
fn sources(kubectl: &Kubectl) -> usize {
    kubectl.list(&["-n", "flux-system", "ocirepositories"]).len()
}
