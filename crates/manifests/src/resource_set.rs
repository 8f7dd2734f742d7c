//! ResourceSets that treat missing records as an error, and not as a command to delete.
//!
//! Flux Operator garbage-collects (deletes) what a ResourceSet no longer renders, and it renders nothing when its provider has
//! no records: because the API said so, or because the provider object was just created again. So all our ResourceSets have a
//! guard: `Permute` multiplies the provider's records with one inline input, so that the template also runs without records,
//! and then it fails, which deletes nothing. To delete everything, the API sends an explicit record.
//!
//! There is a guard against the opposite too. A reconcile during a deletion uses a cached status that is older than the one that
//! the operator has just written: an object that returns to the list is then applied but missing in the inventory, so that it
//! would never be deleted. [`SETTLED`] makes the operator wait until its cache is up to date.

use model::ResourceType;
use serde_json::{Map, Value, json};

use crate::{NAMESPACE, OPERATOR, PROVIDER};

/// How often drift is corrected; also the time within which an object that was deleted by hand comes back.
const EVERY: &str = "10m";

/// Whether a ResourceSet may be rendered at once: its last run was short. A run that waits for Helm to uninstall is long, and the
/// next one may start the moment it ends. The operator then reports that it is not ready, which lets the next attempt, 5 seconds
/// later, pass.
const SETTLED: &str = "!has(status.history) || status.history.size() == 0 || \
     status.conditions.exists(c, c.type == 'Ready' && c.status != 'True') || \
     duration(status.history[0].lastReconciledDuration) < duration('2s')";

/// The ResourceSet of a type.
pub(crate) fn for_type(ty: &ResourceType, template: &str) -> Value {
    let input = &ty.path.replace('-', "_");
    let crds = ty.requires.iter().map(|name| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": name, "ready": true})
    });
    let template = format!(
        r#"<<- $in := inputs.{input} >>
<<- if ne $in.provider.kind "{PROVIDER}" >>
<< fail "the API gave no record: nothing is changed" >>
<<- end >>
<<- if not (get $in "none") >>
{}
<<- end >>
"#,
        template.trim_start_matches('\n').trim_end()
    );
    let settled = json!({
        "apiVersion": OPERATOR, "kind": "ResourceSet", "name": ty.path, "namespace": NAMESPACE,
        "ready": true, "readyExpr": SETTLED
    });
    guarded(&ty.path, &ty.path, [settled].into_iter().chain(crds), &template)
}

/// A ResourceSet whose template also runs if its provider has no records.
pub(crate) fn guarded(name: &str, provider: &str, dependencies: impl Iterator<Item = Value>, template: &str) -> Value {
    // Waiting for the first answer avoids errors at a first boot; the guard is in the template.
    let answered = json!({
        "apiVersion": OPERATOR, "kind": PROVIDER, "name": provider, "namespace": NAMESPACE,
        "ready": true, "readyExpr": "has(status.lastExportedRevision)"
    });
    let depends_on: Vec<Value> = [answered].into_iter().chain(dependencies).collect();
    json!({
        "apiVersion": OPERATOR,
        "kind": "ResourceSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations()},
        "spec": {
            "dependsOn": depends_on,
            "inputStrategy": {"name": "Permute"},
            "inputs": [{"guard": true}],
            "inputsFrom": [{"name": provider}],
            "resourcesTemplate": template
        }
    })
}

/// Deleting a ResourceSet deletes all its objects, so a Kustomization must not prune it. And Flux must not substitute what looks
/// like a variable in a template.
fn annotations() -> Map<String, Value> {
    [
        ("fluxcd.controlplane.io/reconcileEvery", EVERY),
        ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
        ("kustomize.toolkit.fluxcd.io/substitute", "disabled"),
    ]
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .into_iter()
    .collect()
}
