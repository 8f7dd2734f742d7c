//! The other way to install: a Flux Kustomization that takes the identity from a `ConfigMap`.

use harness::repository;
use serde_json::json;

use super::{Scenario, scenario};
use crate::{
    clock::pass,
    packages,
    world::{A_WHILE, CLUSTER, DNS, INTERVAL, World},
};

pub(super) const SCENARIOS: [Scenario; 1] = [scenario(
    "with-kustomization",
    "a cluster that follows an artifact with clusters/ converges too",
    with_kustomization,
)];

fn with_kustomization(first: &mut World) {
    first.log("this takes a cluster of its own");
    let mut world = World::new(first.stack.parts());
    world.stack.define_flux();
    world.stack.start_controllers();
    packages::push_folder(&world.stack, &repository("clusters"), "fleet", "latest");
    let identity = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-identity", "namespace": "flux-system"},
        "data": {
            "CLUSTER_NAME": CLUSTER, "CLUSTER_DNS": DNS, "ENVIRONMENT": "dev",
            "INTERNAL_API_URL": world.url(), "INTERNAL_API_INSECURE": "true", "RECONCILE_EVERY": INTERVAL
        }
    });
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "internal-api-token", "namespace": "flux-system"},
        "stringData": {"token": harness::READ}
    });
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "OCIRepository",
        "metadata": {"name": "fleet", "namespace": "flux-system"},
        "spec": {
            "interval": "1m", "url": format!("oci://{}/fleet", world.stack.registry), "ref": {"tag": "latest"},
            "insecure": true
        }
    });
    let kustomization = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "fleet", "namespace": "flux-system"},
        "spec": {
            "interval": "1m", "prune": true, "path": "./with-kustomization",
            "sourceRef": {"kind": "OCIRepository", "name": "fleet"},
            "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]}
        }
    });
    for object in [identity, secret, source, kustomization] {
        world.kubectl().apply(&object.to_string());
    }
    world.log("identity, token, source and Kustomization are applied");
    world.until_exists(&["namespace", "podinfo"]);
    world.until_exists(&["-n", "podinfo", "deployment", "podinfo"]);
    world.until_converged();
    let before = world.inventory();
    world.log(&format!("before  {}", before.text()));
    world.log("$ kubectl delete kustomization fleet");
    world.kubectl().run(&["-n", "flux-system", "delete", "kustomization", "fleet"]);
    pass(A_WHILE);
    let after = world.inventory();
    world.log(&format!("after   {}", after.text()));
    assert_eq!(before, after, "deleting the Kustomization deletes nothing else");
}
