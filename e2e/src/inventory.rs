//! The objects on a cluster that come from the API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kubectl::Kubectl;

/// The kinds of all objects that the demo's templates, charts and artifacts create.
const KINDS: &str = "namespaces,clusterrolebindings,configmaps,networkpolicies,deployments,\
                     helmreleases,helmcharts,helmrepositories,kustomizations.kustomize.toolkit.fluxcd.io,ocirepositories";

/// Objects by kind, namespace and name, each with its uid, which differs after a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inventory(BTreeMap<(String, String, String), String>);

impl Inventory {
    /// Reads the objects that ResourceSets have created, directly or through Helm and Kustomizations. An object that is being
    /// deleted does not count.
    pub(crate) fn read(kubectl: &Kubectl) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = kubectl.list(&["-A", KINDS]).into_iter().filter(comes_from_api).map(|object| {
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

    /// The objects that do not exist any more, or have another uid.
    pub(crate) fn lost_in(&self, now: &Self) -> Vec<String> {
        let lost = self.0.iter().filter(|(name, uid)| now.0.get(name) != Some(uid));
        lost.map(|((kind, namespace, name), _)| format!("{kind} {namespace}/{name}")).collect()
    }

    /// Whether both have objects of the same names, with any uid.
    pub(crate) fn has_same_names_as(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

/// A ResourceSet without our guard, which scenarios install to see it lose its objects.
pub(crate) const UNGUARDED: &str = "unguarded";

/// Whether a ResourceSet, Helm, or a Kustomization of a ResourceSet has created an object.
fn comes_from_api(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let labels = &metadata["labels"];
    let marks =
        ["resourceset.fluxcd.controlplane.io/name", "helm.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/name"];
    // The objects of the unguarded ResourceSet are meant to be lost.
    let is_ours = labels[marks[0]] != UNGUARDED;
    metadata["deletionTimestamp"].is_null() && is_ours && marks.iter().any(|mark| !labels[mark].is_null())
}
