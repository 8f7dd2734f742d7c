//! ResourceSets for comparison with ours: one with only the guard, and one without, which loses its objects.
//!
//! Each has a provider of the same name, as ours have. That matters: a ResourceSet whose provider has no records finds its own
//! inline input under its name, and then the `fail` of the guard refuses, and not a missing key.

use serde_json::{Value, json};

use crate::world::{DNS, INTERVAL, World};

/// The message of the guard, in ours and in these.
pub(super) const REFUSAL: &str = "the API gave no record: nothing is changed";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Only the guard of our template of namespaces, without the `dependsOn` that would hide it.
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
        // Everything before the first object.
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

/// The manifest of a provider of the cluster's namespaces.
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

/// Deletes the ResourceSet, its provider and its objects.
pub(super) fn remove(world: &World, name: &str) {
    world.kubectl().run(&["-n", "flux-system", "delete", "resourceset,resourcesetinputprovider", name]);
}
