//! Which dependencies Flux can keep on one cluster.
//!
//! The catalogue says what a component depends on; a cluster has some of these, and Flux waits for ever for one that
//! it does not have, cannot order a Helm release after a Kustomization, and does not notice a circle. So a cluster is
//! served only the dependencies that hold there.

use std::collections::BTreeSet;

use model::{ResourceType, Value};

use crate::{Cluster, Definition, Snapshot, cluster::Beside};

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

/// The components of one cluster.
pub(crate) struct Order<'a> {
    pub(crate) fleet: &'a Snapshot,
    pub(crate) cluster: &'a Cluster,
    pub(crate) ty: &'a ResourceType,
    /// Whether there are circles in the catalogue. Few ever have one, and only then it is looked for.
    pub(crate) circular: bool,
}

impl<'a> Order<'a> {
    /// What a component must wait for, without what waits for it in turn.
    pub(crate) fn dependencies(&self, of: &'a Definition) -> impl Iterator<Item = &'a str> {
        self.there(of).filter(|on| !self.circular || !self.waits(on, of.document.id.as_str()))
    }

    /// What a component depends on and the cluster can wait for, each once.
    fn there(&self, of: &'a Definition) -> impl Iterator<Item = &'a str> {
        of.depends_on
            .iter()
            .enumerate()
            .filter(move |(at, on)| {
                let keeps = |(beside, it): (Beside<'_>, &Definition)| beside.enabled && it.delivery == of.delivery;
                !of.depends_on[..*at].contains(on) && self.find(on).is_some_and(keeps)
            })
            .map(|(_, on)| &**on)
    }

    fn waits(&self, from: &'a str, to: &str) -> bool {
        reaches(from, to, |at| {
            let found = self.find(at).into_iter();
            found.flat_map(|(_, definition)| self.there(definition)).collect()
        })
    }

    /// A component of the cluster, if it is defined.
    fn find(&self, id: &str) -> Option<(Beside<'a>, &'a Definition)> {
        let mut references = self.fleet.references(self.cluster, self.ty);
        let (_, beside, definition) = references.find(|(it, ..)| it.as_str() == id)?;
        Some((beside, definition?))
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
