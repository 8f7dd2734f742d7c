//! Objects are deleted when the API says so, and only then.

use std::{cell::Cell, process::Command};

use harness::repository;
use serde_json::json;

use super::{Scenario, scenario};
use crate::{
    clock::{eventually, pass},
    inventory::Inventory,
    kubectl::{Kubectl, condition},
    packages::succeed,
    world::{A_WHILE, CLUSTER, INTERVAL, TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 3] = [
    scenario("restored-in-time", "a cluster is decommissioned and restored before it polls: nothing happens", in_time),
    scenario("decommission", "a decommissioned cluster deletes everything", decommission),
    scenario(
        "enabled-while-collected",
        "a component is enabled again while it is deleted, then the cluster is decommissioned: nothing is left behind",
        enabled_while_collected,
    ),
];

fn in_time(world: &mut World) {
    world.identify(&json!({"reconcile_every": "10m"}));
    world.until("the cluster polls every ten minutes", |kubectl| {
        TYPES.iter().all(|name| {
            let provider = kubectl.flux("resourcesetinputprovider", name);
            provider["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"] == "10m"
        })
    });
    let count = |world: &World| TYPES.map(|name| world.polls(name));
    let mut polls = [0; 3];
    while polls != count(world) {
        polls = count(world);
        pass(A_WHILE);
    }
    let before = world.inventory();
    world.log(&format!("before  {}", before.text()));
    world.change(&["cluster", "delete", CLUSTER, "--yes"]);
    world.change(&["cluster", "restore", CLUSTER, "--yes"]);
    assert_eq!(count(world), polls, "no poll came between");
    world.force_polls();
    eventually("every type is polled", &mut || count(world).iter().zip(polls).all(|(now, before)| *now > before));
    world.force_sets();
    let after = world.inventory();
    world.log(&format!("after   {}", after.text()));
    assert_eq!(before, after);
    world.identify(&json!({"reconcile_every": INTERVAL}));
}

fn decommission(world: &mut World) {
    let before = world.inventory();
    world.log(&format!("before  {}", before.text()));
    world.change(&["cluster", "delete", CLUSTER, "--yes"]);
    world.until_deleted(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_deleted(&["-n", "flux-system", "helmrelease", "platform-podinfo"]);
    world.until_deleted(&["-n", "agent", "configmap", "agent"]);
    world.until_deleted(&["clusterrolebinding", "platform-admins"]);
    world.until_deleted(&["namespace", "podinfo"]);
    world.until("nothing is left of what came from the API", |kubectl| Inventory::read(kubectl).len() == 0);
    for name in TYPES {
        world.log(&format!("ResourceSet {name}: {}", world.set_condition(name)));
    }
    world.change(&["cluster", "restore", CLUSTER, "--yes"]);
    world.until_exists(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_converged();
}

/// Flux Operator may forget a release that returns to the list while it is deleted: if the next run follows at once, the
/// inventory lacks it. Here the deletion is delayed until the list has it again, and the next run must wait.
fn enabled_while_collected(world: &mut World) {
    const RELEASE: [&str; 4] = ["-n", "flux-system", "helmrelease", "platform-podinfo"];
    const SET: &str = "platform-components";
    const WAITS: &str = "status.history[0].lastReconciledDuration";
    let enable = |enabled: bool| json!({"platform_components": [{"id": "podinfo", "enabled": enabled}]});
    let exported =
        |kubectl: &Kubectl| kubectl.flux("resourcesetinputprovider", SET)["status"]["lastExportedRevision"].clone();
    let whole = exported(world.kubectl());
    world.stack.kill("helm-controller");
    world.log("helm-controller is killed, so that a release that is deleted stays for a while");
    world.patch_cluster(&enable(false));
    world.until("the release is being deleted", |kubectl| {
        !kubectl.get(&RELEASE)["metadata"]["deletionTimestamp"].is_null()
    });
    world.patch_cluster(&enable(true));
    world.until("the cluster has polled the whole list again", |kubectl| exported(kubectl) == whole);
    world.stack.start_again("helm-controller");
    world.log("helm-controller is started again, and the deletion ends");
    // Its events would show this too, but Kubernetes drops events of an object that has many.
    let waited = Cell::new(false);
    world.until("the release is there again", |kubectl| {
        waited.set(waited.get() || condition(&kubectl.flux("resourceset", SET), "Ready").contains(WAITS));
        let release = kubectl.get(&RELEASE);
        !release.is_null() && release["metadata"]["deletionTimestamp"].is_null()
    });
    world.until_converged();
    assert!(waited.get(), "the ResourceSet ran again at once, and may have forgotten the release");
    world.log("the ResourceSet has waited until the operator's cache was up to date");
    assert_eq!(orphans(world), "", "objects that no decommission would delete");
    the_recipe_finds_orphans(world);
    decommission(world);
}

fn the_recipe_finds_orphans(world: &World) {
    let labels = "resourceset.fluxcd.controlplane.io/name=namespaces";
    world.kubectl().run(&["-n", "default", "create", "configmap", "left-behind"]);
    world.kubectl().run(&["-n", "default", "label", "configmap", "left-behind", labels]);
    assert_eq!(orphans(world), "ConfigMap  default/left-behind  namespaces");
    world.kubectl().run(&["-n", "default", "delete", "configmap", "left-behind"]);
}

/// The orphans that the recipe of the book finds.
fn orphans(world: &World) -> String {
    let mut recipe = Command::new(repository("docs/examples/orphans"));
    let tools = world.stack.parts().join("kubernetes").display().to_string();
    let path = format!("{tools}:{}", std::env::var("PATH").unwrap_or_default());
    recipe.env("PATH", path).env("KUBECONFIG", &world.kubectl().config).env("HOME", world.stack.root.path());
    let found = succeed(recipe);
    world.log(&format!("$ docs/examples/orphans\n{found}"));
    found.trim().to_owned()
}
