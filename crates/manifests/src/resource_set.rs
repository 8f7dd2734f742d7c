//! ResourceSets that take an absence for a fault and not for a command.
//!
//! Flux Operator deletes what a ResourceSet no longer renders, and it renders nothing when its provider has no records:
//! because the API said so, or because the provider object was made anew a moment ago. So every ResourceSet of ours is
//! guarded: `Permute` multiplies the provider's records with one inline input, so that the template also runs when there are
//! none, and then it fails, which deletes nothing. An API that wants everything gone says so, in a record of its own.

use model::ResourceType;
use serde_json::{Map, Value, json};

use crate::{NAMESPACE, OPERATOR, PROVIDER};

/// How often drift is corrected; also the time within which something that was deleted by hand comes back.
const EVERY: &str = "10m";

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
    guarded(&ty.path, &ty.path, crds, &template)
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
