//! What is told to go, goes; and only then.

use serde_json::json;

use super::{Scenario, scenario};
use crate::{
    clock::{eventually, pass},
    world::{A_WHILE, CLUSTER, INTERVAL, TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 2] = [
    scenario("restored-in-time", "a cluster is decommissioned and restored before it polls: nothing happens", in_time),
    scenario("decommission", "a decommissioned cluster is told to let everything go, and does", decommission),
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
    world.say(&format!("before  {}", before.text()));
    world.change(&["cluster", "delete", CLUSTER, "--yes"]);
    world.change(&["cluster", "restore", CLUSTER, "--yes"]);
    assert_eq!(count(world), polls, "no poll came between");
    world.force_polls();
    eventually("every type is polled", &mut || count(world).iter().zip(polls).all(|(now, before)| *now > before));
    world.force_sets();
    let after = world.inventory();
    world.say(&format!("after   {}", after.text()));
    assert_eq!(before, after);
    world.identify(&json!({"reconcile_every": INTERVAL}));
}

fn decommission(world: &mut World) {
    let before = world.inventory();
    world.say(&format!("before  {}", before.text()));
    world.change(&["cluster", "delete", CLUSTER, "--yes"]);
    world.until_gone(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_gone(&["-n", "flux-system", "helmrelease", "platform-podinfo"]);
    world.until_gone(&["-n", "agent", "configmap", "agent"]);
    world.until_gone(&["clusterrolebinding", "platform-admins"]);
    world.until_gone(&["namespace", "podinfo"]);
    world.until("nothing is left of what the API has brought", |kubectl| {
        crate::inventory::Inventory::of(kubectl).len() == 0
    });
    for name in TYPES {
        world.say(&format!("ResourceSet {name}: {}", world.set_says(name)));
    }
    world.change(&["cluster", "restore", CLUSTER, "--yes"]);
    world.until_there(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_converged();
}
