//! ResourceSets that are not ours, beside ours, to show what the guard alone does and what is lost without any.
//!
//! Each has a provider of its own under its own name, as ours have. That matters: a ResourceSet whose provider has no records
//! finds its own inline input under its name, and it is then the `fail` of the guard that refuses, and no missing key.

use serde_json::{Value, json};

use crate::world::{DNS, INTERVAL, World};

/// What the guard says, in ours and in these.
pub(super) const REFUSAL: &str = "the API gave no record: nothing is changed";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// What our template of namespaces begins with on the cluster, and no `dependsOn` that would hide it.
    Alone,
    /// Nothing.
    None,
}

/// Installs a provider of the cluster's namespaces and a ResourceSet that makes a ConfigMap `{name}-{id}` of each.
pub(super) fn install(world: &World, name: &str, guard: Guard) {
    world.kubectl().apply(&provider(world, name).to_string());
    let metadata = |id: &str| format!("metadata:\n  name: {name}-<< {id} >>\n  namespace: flux-system\n");
    let object = |id: &str| format!("---\napiVersion: v1\nkind: ConfigMap\n{}", metadata(id));
    let mut spec = json!({"inputsFrom": [{"name": name}], "resourcesTemplate": object("inputs.id")});
    if guard == Guard::Alone {
        let ours = world.kubectl().flux("resourceset", "namespaces")["spec"].take();
        // All that stands before the first object.
        let (begin, _) = ours["resourcesTemplate"].as_str().unwrap().split_once("---\n").unwrap();
        let begin = begin.replace("inputs.namespaces", &format!("inputs.{}", name.replace('-', "_")));
        spec["resourcesTemplate"] = json!(format!("{begin}{}<<- end >>\n", object("$in.id")));
        for field in ["inputStrategy", "inputs"] {
            spec[field] = ours[field].clone();
        }
    }
    let metadata = json!({"name": name, "namespace": "flux-system"});
    let set =
        json!({"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSet", "metadata": metadata, "spec": spec});
    world.kubectl().apply(&set.to_string());
}

/// A provider of the cluster's namespaces, as it is made.
pub(super) fn provider(world: &World, name: &str) -> Value {
    json!({
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSetInputProvider",
        "metadata": {
            "name": name, "namespace": "flux-system",
            "annotations": {"fluxcd.controlplane.io/reconcileEvery": INTERVAL}
        },
        "spec": {
            "type": "ExternalService", "insecure": true, "secretRef": {"name": "internal-api-token"},
            "url": format!("{}/api/v2/flux/clusters/{DNS}/namespaces", world.url())
        }
    })
}

/// Removes both, and what was made of them.
pub(super) fn remove(world: &World, name: &str) {
    world.kubectl().run(&["-n", "flux-system", "delete", "resourceset,resourcesetinputprovider", name]);
}
