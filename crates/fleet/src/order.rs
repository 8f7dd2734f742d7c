//! Which dependencies Flux can keep on one cluster.
//!
//! The catalogue says what a component depends on; a cluster has some of these, and Flux waits for ever for one that
//! it does not have, cannot order a Helm release after a Kustomization, and does not notice a circle. So a cluster is
//! served only the dependencies that hold there.

use std::collections::{BTreeMap, BTreeSet};

use model::Value;

use crate::{Definition, Reference};

/// What Flux makes of a component. It orders within one kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    HelmRelease,
    Kustomization,
}

impl Delivery {
    /// By where a component comes from, and what is there: a registry holds manifests unless it is said to hold charts.
    pub(crate) fn of(url: Option<&Value>, content: Option<&Value>) -> Self {
        let is = |value: Option<&Value>, test: fn(&str) -> bool| value.and_then(Value::as_str).is_some_and(test);
        if is(url, |url| url.starts_with("oci://")) && !is(content, |content| content == "chart") {
            Self::Kustomization
        } else {
            Self::HelmRelease
        }
    }
}

/// The dependencies among the components of one cluster.
pub(crate) struct Order<'a> {
    edges: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Order<'a> {
    /// The order for the references of a cluster, each with its definition.
    pub(crate) fn among(resolved: &[(&'a Reference, &'a Definition)]) -> Self {
        // Most catalogues order little, and most polls ask for nothing to be ordered.
        if resolved.iter().all(|(_, definition)| definition.depends_on.is_empty()) {
            return Self { edges: BTreeMap::new() };
        }
        let enabled: BTreeMap<&str, Delivery> = resolved
            .iter()
            .filter(|(reference, _)| reference.enabled())
            .map(|(reference, definition)| (reference.id.as_str(), definition.delivery))
            .collect();
        let edges = resolved.iter().map(|(reference, definition)| {
            let mut seen = BTreeSet::new();
            let all = definition.depends_on.iter().map(AsRef::as_ref);
            let there = all.filter(|on| enabled.get(on) == Some(&definition.delivery) && seen.insert(*on));
            (reference.id.as_str(), there.collect())
        });
        Self { edges: edges.collect() }
    }

    /// What a component must wait for, without what waits for it in turn.
    pub(crate) fn dependencies(&self, id: &str) -> Vec<&'a str> {
        let all = self.edges.get(id).map_or(&[][..], Vec::as_slice);
        all.iter().copied().filter(|on| !self.reaches(on, id)).collect()
    }

    fn reaches(&self, from: &'a str, to: &str) -> bool {
        reaches(from, to, |at| self.edges.get(at).into_iter().flatten().copied().collect())
    }
}

/// Whether a walk along dependencies comes from one id to another, or begins there.
pub(crate) fn reaches<'a>(from: &'a str, to: &str, next: impl Fn(&str) -> Vec<&'a str>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(next(at));
        }
    }
    false
}
