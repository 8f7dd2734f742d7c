//! What the API has brought onto a cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kubectl::Kubectl;

/// Everything that templates of the demo make, and what charts and artifacts make of it.
const KINDS: &str = "namespaces,clusterrolebindings,configmaps,networkpolicies,deployments,\
                     helmreleases,helmcharts,helmrepositories,kustomizations.kustomize.toolkit.fluxcd.io,ocirepositories";

/// Objects by kind, namespace and name, each with the uid that tells it from its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inventory(BTreeMap<(String, String, String), String>);

impl Inventory {
    /// What ResourceSets have made, and what was made of that. An object that is on its way out is not there any more.
    pub(crate) fn of(kubectl: &Kubectl) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = kubectl.list(&["-A", KINDS]).into_iter().filter(is_brought).map(|object| {
            let metadata = &object["metadata"];
            let name = (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
            (name, text(&metadata["uid"]))
        });
        Self(named.collect())
    }

    /// The names of each kind, with the beginnings of their uids.
    pub(crate) fn text(&self) -> String {
        let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((kind, _, name), uid) in &self.0 {
            kinds.entry(kind).or_default().push(format!("{name} ({})", &uid[..8]));
        }
        let lines: Vec<_> = kinds.into_iter().map(|(kind, names)| format!("  {kind}: {}", names.join(", "))).collect();
        format!("{} objects\n{}", self.0.len(), lines.join("\n"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is not there any more, or is there under another uid.
    pub(crate) fn lost_in(&self, now: &Self) -> Vec<String> {
        let lost = self.0.iter().filter(|(name, uid)| now.0.get(name) != Some(uid));
        lost.map(|((kind, namespace, name), _)| format!("{kind} {namespace}/{name}")).collect()
    }

    /// Whether the same names are there, be they the same objects or not.
    pub(crate) fn has_names_of(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

/// A ResourceSet without our guard, which scenarios put beside ours to see it lose its objects.
pub(crate) const UNGUARDED: &str = "unguarded";

/// By a ResourceSet, by Helm, or by a Kustomization that a ResourceSet has made.
fn is_brought(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let labels = &metadata["labels"];
    let marks =
        ["resourceset.fluxcd.controlplane.io/name", "helm.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/name"];
    // The providers that phone-home makes are no goods, and what is there to be lost is none either.
    let is_ours = labels[marks[0]] != UNGUARDED;
    metadata["deletionTimestamp"].is_null() && is_ours && marks.iter().any(|mark| !labels[mark].is_null())
}
