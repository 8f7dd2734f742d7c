//! What the API refuses, so that a live cluster never gets an answer that deletes: a DNS name that another cluster takes over,
//! resource types that differ on one of two replicas, a fleet without definitions.

use std::fs;

use harness::repository;
use serde_json::json;

use super::{
    Scenario,
    nothing_lost::{READY, endure, recover, until_providers_report, without_losses},
    scenario,
};
use crate::{
    kubectl::condition,
    world::{CLUSTER, DNS, TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 3] = [
    scenario("renamed", "the cluster is renamed, and another one is to take its old name", renamed),
    scenario("types-swapped", "one of two replicas has two resource types swapped", types_swapped),
    scenario("no-definitions", "all definitions are missing that the cluster refers to", no_definitions),
];

fn renamed(world: &mut World) {
    const NEW: &str = "demo-cluster-02.k8s.example.com";
    const HEIR: [&str; 7] = ["cluster", "create", "heir", "--dns", DNS, "--environment", "dev"];
    without_losses(world, |world| {
        world.patch_cluster(&json!({"cluster_dns": NEW}));
        let refused = world.attempt(&HEIR);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        world.log(&format!("$ flux-resourceset-cli {}\n{message}", HEIR.join(" ")));
        assert_eq!(refused.status.code(), Some(4), "it is refused as a conflict: {message}");
        assert!(message.contains(CLUSTER), "the error names the cluster that has the name: {message}");
        world.log("the cluster still polls under its old name");
        world.force_polls();
        endure(world);
        until_providers_report(world, READY);
        let problems = world.cli(&["problems"]);
        assert!(problems.contains("former-dns-polled"), "{problems}");

        world.identify(&json!({"cluster_dns": NEW}));
        world.until("it polls under its new name", |kubectl| {
            TYPES.iter().all(|name| {
                let provider = kubectl.flux("resourcesetinputprovider", name);
                provider["spec"]["url"].as_str().is_some_and(|url| url.contains(NEW))
            })
        });
        world.change(&["cluster", "release-dns", CLUSTER, DNS, "--yes"]);
        world.log("now the old name is free, and another cluster may have it");
        // A cluster that still polls under it would lose everything, so the plan lists this, and the operator has to confirm.
        let unasked = world.attempt(&HEIR);
        let message = String::from_utf8_lossy(&unasked.stderr).into_owned();
        assert!(!unasked.status.success() && message.contains("-podinfo"), "{message}");
        world.change(&[&HEIR[..], &["--yes"]].concat());
        recover(world);
    });
    world.change(&["cluster", "delete", "heir", "--yes"]);
    world.change(&["cluster", "purge", "heir", "--yes"]);
    world.patch_cluster(&json!({"cluster_dns": DNS}));
    world.identify(&json!({"cluster_dns": DNS}));
    world.change(&["cluster", "release-dns", CLUSTER, NEW, "--yes"]);
    recover(world);
}

fn types_swapped(world: &mut World) {
    let folder = world.stack.root.path().join("swapped-types");
    fs::create_dir_all(&folder).unwrap();
    for (kind, list, other) in
        [("namespace", "namespaces", "rolebindings"), ("rolebinding", "rolebindings", "namespaces")]
    {
        let text = fs::read_to_string(repository(&format!("resources/{kind}.yaml"))).unwrap();
        let swapped = text.replacen(&format!("    list: {list}\n"), &format!("    list: {other}\n"), 1);
        assert_ne!(text, swapped);
        fs::write(folder.join(format!("{kind}.yaml")), swapped).unwrap();
    }
    let (replica, url) = world.start_replica(&folder);
    world.log("a second server on the same store, whose files swap the lists of namespaces and role bindings");
    without_losses(world, |world| {
        world.identify(&json!({"api_url": url}));
        world.until("the cluster polls the second server", |kubectl| {
            let status = |name: &str| condition(&kubectl.flux("resourcesetinputprovider", name), "Ready");
            ["namespaces", "rolebindings"].iter().all(|name| status(name).contains("HTTP 503"))
        });
        for name in TYPES {
            world.log(&format!("provider {name}: {}", world.provider_condition(name)));
        }
        assert!(world.provider_condition("platform-components").starts_with(READY), "other types are served");
        endure(world);
        world.identify(&json!({"api_url": world.url()}));
        recover(world);
    });
    drop(replica);
}

fn no_definitions(world: &mut World) {
    without_losses(world, |world| {
        let bare = world.start_api_without_definitions();
        for name in TYPES {
            let (status, problem) = world.poll(DNS, name);
            world.log(&format!("GET …/{name}: {status} {}", problem["code"]));
            assert_eq!((status, &problem["code"]), (500, &json!("no-definitions")), "{problem}");
        }
        until_providers_report(world, "HTTP 500");
        endure(world);
        drop(bare);
    });
    world.start_api();
    recover(world);
}
