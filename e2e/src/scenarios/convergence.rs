//! Changes in the API reach a cluster without any action on it.

use std::{fmt::Write as _, fs, time::Duration};

use harness::repository;
use serde_json::{Value, json};

use super::{Scenario, scenario};
use crate::{
    clock::pass,
    kubectl::{Kubectl, is_ready},
    timeline::{Timeline, time_of_poll_after},
    world::{CLUSTER, World},
};

pub(super) const SCENARIOS: [Scenario; 11] = [
    scenario("first-boot", "a bare cluster installs its bootstrap and converges", first_boot),
    scenario("patch", "a patched value reaches the Deployment", patch),
    scenario(
        "hostile-values",
        "quotes, commas, braces, newlines, paths with [0]: values arrive unchanged",
        hostile_values,
    ),
    scenario("chart-version", "a new chart version is rolled out", chart_version),
    scenario("drift", "what is deleted or changed by hand is corrected", drift),
    scenario("namespaces", "namespaces come with labels, go when they are unassigned, survive by choice", namespaces),
    scenario("rolebindings", "groups, users and service accounts are bound, and the role can change", rolebindings),
    scenario("disabled", "a disabled component is deleted, and comes back when it is enabled", disabled),
    scenario("dependencies", "a component waits for the one that it depends on", dependencies),
    scenario("many-namespaces", "250 namespaces arrive, and none is missing", many_namespaces),
    scenario("added-type", "a resource type that was added as data reaches the cluster", added_type),
];

fn first_boot(world: &mut World) {
    world.first_boot();
    for name in ["platform-admins", "dev-readers"] {
        world.until_exists(&["clusterrolebinding", name]);
    }
    let namespace = world.kubectl().get(&["namespace", "podinfo"]);
    assert_eq!(namespace["metadata"]["labels"]["app"], "podinfo");
    assert_eq!(values_for_reading(world.kubectl())["replicaCount"], "2", "the values can be read in a ConfigMap");
    world.log(&world.inventory().text());
}

fn patch(world: &mut World) {
    let timeline = Timeline::start(world.kubectl(), world.watch);
    // The states before the change come first.
    pass(Duration::from_secs(1));
    let (polls, change) = (world.polls("platform-components"), world.watch.seconds());
    world.change(&["component", "patch", "podinfo", "--cluster", CLUSTER, "--set", "replicaCount=3"]);
    let poll = time_of_poll_after(world, polls);
    let steps = [
        "HelmRelease wants replicaCount 3",
        "Deployment  wants 3",
        "wants 3 replicas, 3 ready",
        "release v2 (deployed)",
    ];
    world.until("every step was seen", |_| steps.iter().all(|step| timeline.time_of(step).is_some()));
    let [release, deployment, pods, done] = steps.map(|step| timeline.time_of(step).unwrap() - change);
    world.log(&format!(
        "after the change: polled {:.1} s, HelmRelease changed {release:.1} s, Deployment changed {deployment:.1} s, \
         pods ready {pods:.1} s, release reported {done:.1} s",
        poll - change
    ));
    drop(timeline);
    world.change(&["component", "patch", "podinfo", "--cluster", CLUSTER, "--set", "replicaCount=2"]);
    world.until("the Deployment has 2 replicas again", |kubectl| podinfo(kubectl)["spec"]["replicas"] == 2);
}

fn hostile_values(world: &mut World) {
    let message = "a \"b\" 'c', {d}: [e] \\ <f> & # << g >> {{ h }} ${i}\nsecond line: yes";
    let before = world.document("cluster", CLUSTER);
    world.patch_cluster(&json!({"patches": {"podinfo": {
        "ui.message": message,
        "ui.color": "y",
        "hosts[0].host": "patched.example.com",
        "nodeSelector.kubernetes\\.io/os": "linux",
        "list": "{a,b}",
        "not-a-number": "0123",
        "typed": {"float": 1.5, "flag": false, "words": ["on", "1.10", ""]},
    }}}));
    world.until("the chart has received the message", |kubectl| given(kubectl)["ui"]["message"] == message);
    let given_now = given(world.kubectl());
    world.log(&format!("the chart has received {given_now}"));
    assert_eq!(given_now["ui"]["color"], "y");
    assert_eq!(given_now["hosts"], json!([{"host": "patched.example.com"}]), "Helm replaces lists");
    assert_eq!(given_now["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    assert_eq!(given_now["list"], "{a,b}");
    assert_eq!(given_now["not-a-number"], "0123");
    assert_eq!(given_now["typed"], json!({"float": 1.5, "flag": false, "words": ["on", "1.10", ""]}));
    let environment = &podinfo(world.kubectl())["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(environment[1]["value"], message);
    let read = values_for_reading(world.kubectl());
    assert_eq!(read["ui.message"], message);
    let all: Value = serde_json::from_str(read["patches.json"].as_str().unwrap()).unwrap();
    assert_eq!(all["hosts[0].host"], "patched.example.com", "what cannot be a key is read in patches.json");
    world.put("cluster", &before);
    world.until("the chart receives its old values again", |kubectl| given(kubectl)["ui"]["color"] == "#2f855a");
}

fn chart_version(world: &mut World) {
    let version = |kubectl: &Kubectl| podinfo(kubectl)["metadata"]["labels"]["chart"].clone();
    assert_eq!(version(world.kubectl()), "1.1.0", "\"latest\" is the newest");
    let before = world.document("component", "podinfo");
    world.change(&["component", "patch", "podinfo", "-p", "{component_version: 1.0.0}", "--yes"]);
    world.until("the Deployment is of chart 1.0.0", |kubectl| version(kubectl) == "1.0.0");
    world.put("platform_component", &before);
    world.until("the Deployment is of chart 1.1.0 again", |kubectl| version(kubectl) == "1.1.0");
}

fn drift(world: &mut World) {
    world.log("$ kubectl -n podinfo delete deployment podinfo");
    world.kubectl().run(&["-n", "podinfo", "delete", "deployment", "podinfo"]);
    world.log("$ kubectl label namespace podinfo app=changed-by-hand --overwrite");
    world.kubectl().run(&["label", "namespace", "podinfo", "app=changed-by-hand", "--overwrite"]);
    world.log("both are corrected at the next reconcile, every ten minutes; now one is requested");
    world.force("helmrelease", "platform-podinfo");
    world.force_sets();
    world.until_exists(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until("the namespace has its label again", |kubectl| {
        kubectl.get(&["namespace", "podinfo"])["metadata"]["labels"]["app"] == "podinfo"
    });
}

fn namespaces(world: &mut World) {
    world.change(&["namespace", "create", "team-a", "--cluster", CLUSTER, "--label", "team=a", "--label", "y=no"]);
    let keep = "fluxcd.controlplane.io/prune=disabled";
    world.change(&["namespace", "create", "team-b", "--cluster", CLUSTER, "--annotation", keep]);
    world.until_exists(&["namespace", "team-b"]);
    world.until("namespace team-a has its labels", |kubectl| {
        let labels = &kubectl.get(&["namespace", "team-a"])["metadata"]["labels"];
        labels["team"] == "a" && labels["y"] == "no"
    });
    for name in ["team-b", "team-a"] {
        world.change(&["namespace", "unassign", name, "--cluster", CLUSTER, "--yes"]);
    }
    world.until_deleted(&["namespace", "team-a"]);
    let kept = world.kubectl().get(&["namespace", "team-b"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null() && !kept.is_null(), "team-b is kept by its annotation");
    world.log("namespace team-b is kept by its annotation");
    world.kubectl().run(&["delete", "namespace", "team-b"]);
    for name in ["team-a", "team-b"] {
        world.cli(&["namespace", "delete", name, "--yes"]);
    }
}

fn rolebindings(world: &mut World) {
    let subjects = ["--subject", "Group:team", "--subject", "User:1234", "--subject", "ServiceAccount:podinfo/default"];
    let create = ["rolebinding", "create", "team-access", "--role", "view", "--cluster", CLUSTER];
    world.change(&[&create[..], &subjects].concat());
    let binding = |kubectl: &Kubectl| kubectl.get(&["clusterrolebinding", "team-access"]);
    world.until_exists(&["clusterrolebinding", "team-access"]);
    let before = binding(world.kubectl());
    let group = "rbac.authorization.k8s.io";
    let expected = json!([
        {"kind": "Group", "name": "team", "apiGroup": group},
        {"kind": "User", "name": "1234", "apiGroup": group},
        {"kind": "ServiceAccount", "name": "default", "namespace": "podinfo"},
    ]);
    assert_eq!(before["subjects"], expected);

    let change = ["rolebinding", "patch", "team-access", "--yes", "-p"];
    let refused = world.attempt(&[&change[..], &["{role: edit}"]].concat());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    world.log(&format!("$ flux-resourceset-cli {} '{{role: edit}}'\n{message}", change.join(" ")));
    assert!(
        message.contains("Kubernetes cannot change it"),
        "a role does not change without a request for it: {message}"
    );
    world.change(&[&change[..], &["{role: edit, role_may_change: true}"]].concat());
    world.until("the role is edit", |kubectl| binding(kubectl)["roleRef"]["name"] == "edit");
    let after = binding(world.kubectl());
    assert_eq!(after["subjects"], expected);
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"], "a role is changed by a new binding");
    world.change(&["rolebinding", "unassign", "team-access", "--cluster", CLUSTER, "--yes"]);
    world.until_deleted(&["clusterrolebinding", "team-access"]);
    world.cli(&["rolebinding", "delete", "team-access", "--yes"]);
}

fn disabled(world: &mut World) {
    let set = |enabled: bool| json!({"platform_components": [{"id": "podinfo", "enabled": enabled}]});
    world.patch_cluster(&set(false));
    world.until_deleted(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_deleted(&["-n", "flux-system", "helmrelease", "platform-podinfo"]);
    world.until_deleted(&["-n", "flux-system", "helmchart", "charts-podinfo"]);
    assert!(!world.kubectl().flux("helmrelease", "platform-traefik").is_null(), "only podinfo is deleted");
    world.patch_cluster(&set(true));
    world.until_exists(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_converged();
}

fn dependencies(world: &mut World) {
    const CHAIN: [&str; 3] = ["chain-a", "chain-b", "chain-c"];
    let before = world.document("cluster", CLUSTER);
    let url = world.document("component", "podinfo")["oci_url"].as_str().unwrap().to_owned();
    let mut on = None;
    for name in CHAIN {
        let mut create = vec!["component", "create", name, "--component-path", "podinfo", "--oci-url", &url];
        create.extend(on.into_iter().flat_map(|on| ["--depends-on", on]));
        world.change(&create);
        on = Some(name);
    }
    let listed: Vec<_> = CHAIN.iter().rev().map(|name| json!({"id": name})).collect();
    world.patch_cluster(&json!({"platform_components": listed}));
    let release = |kubectl: &Kubectl, name: &str| kubectl.flux("helmrelease", &format!("platform-{name}"));
    world.until("all three are ready", |kubectl| CHAIN.iter().all(|name| is_ready(&release(kubectl, name))));
    let deployed =
        |name| release(world.kubectl(), name)["status"]["history"][0]["firstDeployed"].as_str().unwrap().to_owned();
    let times = CHAIN.map(deployed);
    world.log(&format!("first deployed: {}", times.join(", ")));
    // Helm waits for the pods of one, which takes seconds, before Flux begins with the next.
    assert!(times.is_sorted_by(|one, next| one < next), "each came after the one that it depends on");
    world.put("cluster", &before);
    for name in CHAIN.iter().rev() {
        world.cli(&["component", "delete", name, "--yes"]);
        world.until_deleted(&["-n", "flux-system", "helmrelease", &format!("platform-{name}")]);
        world.log("a namespace that a release has made stays, and is removed here");
        world.kubectl().run(&["delete", "namespace", name]);
    }
}

fn many_namespaces(world: &mut World) {
    let mut cluster = world.document("cluster", CLUSTER);
    let mut documents = String::new();
    for number in 0..250 {
        let id = format!("bulk-{number:03}");
        let namespace = json!({"kind": "namespace", "id": id, "labels": {"bulk": "yes"}});
        writeln!(documents, "---\n{namespace}").unwrap();
        cluster["namespaces"].as_array_mut().unwrap().push(json!({"id": id}));
    }
    cluster["kind"] = json!("cluster");
    writeln!(documents, "---\n{cluster}").unwrap();
    let file = world.stack.root.path().join("many.yaml");
    fs::write(&file, documents).unwrap();
    world.change(&["apply", "-f", file.to_str().unwrap(), "--yes"]);
    let count = |kubectl: &Kubectl| kubectl.list(&["namespaces", "-l", "bulk=yes"]).len();
    world.until("all 250 are there", |kubectl| count(kubectl) == 250);
    let changes: Value = serde_json::from_str(&world.cli(&["changes", "--limit", "1", "-o", "json"])).unwrap();
    world.change(&["changes", "revert", &changes[0]["revision"].to_string(), "--yes"]);
    world.until("all 250 are deleted", |kubectl| count(kubectl) == 0);
}

fn added_type(world: &mut World) {
    let before = world.document("cluster", CLUSTER);
    let types = world.stack.root.path().join("types");
    fs::create_dir_all(&types).unwrap();
    let example = |path: &str| fs::read_to_string(repository(path)).unwrap();
    let (plain, template) =
        ("docs/examples/resources/network_policy.yaml", "docs/examples/network_policy_template.yaml");
    fs::write(types.join("network_policy.yaml"), example(plain) + &example(template)).unwrap();
    world.log("one file is added, and the API is restarted; the cluster installs its bootstrap again");
    world.resources = Some(types);
    world.kill_api();
    world.start_api();
    world.bootstrap();
    let rules = r#"ingress_rules=[{"from_namespace": "traefik", "port": 9898}]"#;
    let create = ["create", "network_policy", "allow-traefik", "--field", "target_namespace=podinfo", "--field", rules];
    world.change(&[&create[..], &["--cluster", CLUSTER]].concat());
    world.until_exists(&["-n", "podinfo", "networkpolicy", "allow-traefik"]);
    let policy = world.kubectl().get(&["-n", "podinfo", "networkpolicy", "allow-traefik"]);
    assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], 9898);
    world.change(&["unassign", "network_policy", "allow-traefik", "--cluster", CLUSTER, "--yes"]);
    world.until_deleted(&["-n", "podinfo", "networkpolicy", "allow-traefik"]);
    world.change(&["delete", "network_policy", "allow-traefik", "--yes"]);

    world.log("the type is removed again, and the cluster has no list of it");
    world.put("cluster", &before);
    world.resources = None;
    world.kill_api();
    world.start_api();
    // Until an operator accepts the removal, a server without the file refuses changes.
    world.change(&["types", "accept", "--yes"]);
    world.bootstrap();
    let both = "resourceset,resourcesetinputprovider";
    world.kubectl().run(&["-n", "flux-system", "delete", both, "network-policies"]);
}

fn podinfo(kubectl: &Kubectl) -> Value {
    kubectl.get(&["-n", "podinfo", "deployment", "podinfo"])
}

/// The values that the chart of podinfo received.
fn given(kubectl: &Kubectl) -> Value {
    let map = kubectl.get(&["-n", "podinfo", "configmap", "podinfo-values"]);
    serde_json::from_str(map["data"]["values.json"].as_str().unwrap_or("null")).unwrap()
}

fn values_for_reading(kubectl: &Kubectl) -> Value {
    kubectl.flux("configmap", &format!("values-podinfo-{CLUSTER}"))["data"].clone()
}
