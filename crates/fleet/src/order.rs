//! Which dependencies Flux can keep on one cluster.
//!
//! The catalogue says what a component depends on; a cluster has some of these, and Flux waits for ever for one that
//! it does not have, cannot order a Helm release after a Kustomization, and does not notice a circle. So a cluster is
//! served only the dependencies that hold there.

use std::collections::{BTreeMap, BTreeSet};

use model::{ResourceType, Value};

use crate::{Definition, Reference};

/// What Flux makes of a component. It orders within one kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    HelmRelease,
    Kustomization,
}

impl Delivery {
    pub(crate) fn of(definition: &Definition) -> Self {
        match definition.fields.get("oci_url").and_then(Value::as_str) {
            Some(url) if url.starts_with("oci://") => Self::Kustomization,
            _ => Self::HelmRelease,
        }
    }
}

/// The dependencies among the components of one cluster.
pub(crate) struct Order<'a> {
    edges: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Order<'a> {
    /// The order for the references of a cluster, each with its definition.
    pub(crate) fn among(ty: &ResourceType, resolved: &[(&'a Reference, &'a Definition)]) -> Self {
        let enabled: BTreeMap<&str, Delivery> = resolved
            .iter()
            .filter(|(reference, _)| reference.enabled())
            .map(|(reference, definition)| (reference.id.as_str(), Delivery::of(definition)))
            .collect();
        let edges = resolved.iter().map(|(reference, definition)| {
            let delivery = Some(Delivery::of(definition));
            let mut seen = BTreeSet::new();
            let there = definition.depends_on(ty).filter(|on| enabled.get(on).copied() == delivery && seen.insert(*on));
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
