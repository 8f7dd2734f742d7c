//! ResourceSets that take an absence for a fault and not for a command.
//!
//! Flux Operator deletes what a ResourceSet no longer renders, and it renders nothing when its provider has no records:
//! because the API said so, or because the provider object was made anew a moment ago. So every ResourceSet of ours is
//! guarded: `Permute` multiplies the provider's records with one inline input, so that the template also runs when there are
//! none, and then it fails, which deletes nothing. An API that wants everything gone says so, in a record of its own.
//!
//! The opposite is guarded against too. While the operator deletes something it may be asked to render again, and it then
//! does so from a cached status that is older than what it has just written: what returns to the list is applied and stays
//! out of the inventory, so that nothing would ever delete it. [`SETTLED`] makes it wait for its cache.

use model::ResourceType;
use serde_json::{Map, Value, json};

use crate::{NAMESPACE, OPERATOR, PROVIDER};

/// How often drift is corrected; also the time within which something that was deleted by hand comes back.
const EVERY: &str = "10m";

/// Whether a ResourceSet may be rendered at once: its last run was not one that took long. A run that waits for Helm to
/// uninstall does, and another one may be due the moment it ends. The operator then says that it is not ready, which is what
/// this looks at the next time, 5 seconds later.
const SETTLED: &str = "!has(status.history) || status.history.size() == 0 || \
     status.conditions.exists(c, c.type == 'Ready' && c.status != 'True') || \
     duration(status.history[0].lastReconciledDuration) < duration('2s')";

/// The ResourceSet of a type.
pub(crate) fn of_type(ty: &ResourceType, template: &str) -> Value {
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

/// A ResourceSet whose template runs even if its provider has no records.
pub(crate) fn guarded(name: &str, provider: &str, needs: impl Iterator<Item = Value>, template: &str) -> Value {
    // Waiting for the first answer makes a first boot quiet; what guards is the template.
    let answered = json!({
        "apiVersion": OPERATOR, "kind": PROVIDER, "name": provider, "namespace": NAMESPACE,
        "ready": true, "readyExpr": "has(status.lastExportedRevision)"
    });
    let depends_on: Vec<Value> = [answered].into_iter().chain(needs).collect();
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

/// A ResourceSet that is deleted takes all that it made with it, so a Kustomization must not; and what looks like a variable
/// in a template is none.
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
