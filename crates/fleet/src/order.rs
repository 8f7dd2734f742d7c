//! Which dependencies Flux can keep on one cluster.
//!
//! The catalogue says what a component depends on; a cluster has some of these, and Flux waits for ever for one that
//! it does not have, cannot order a Helm release after a Kustomization, and does not notice a circle. So a cluster is
//! served only the dependencies that hold there.

use std::{cell::OnceCell, collections::BTreeSet};

use model::{ResourceType, Value};

use crate::{Cluster, Definition, Snapshot, cluster::Beside, slots::Place};

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
    fleet: &'a Snapshot,
    cluster: &'a Cluster,
    ty: &'a ResourceType,
    /// Whether there are circles in the catalogue. Few ever have one, and only then it is looked for.
    circular: bool,
    /// Which places the cluster's list may have, made when the first dependency is looked for.
    filter: OnceCell<PlaceFilter>,
}

/// Tells most places that a list does not have: a bit for each place that it has, by the place's lowest bits. Without it, each
/// dependency that a cluster lacks would cost a poll a walk over the whole list.
struct PlaceFilter([u64; 4]);

impl PlaceFilter {
    fn of(places: impl Iterator<Item = Place>) -> Self {
        let mut filter = Self([0; 4]);
        for place in places {
            let (word, bit) = Self::bit(place);
            filter.0[word] |= bit;
        }
        filter
    }

    fn may_have(&self, place: Place) -> bool {
        let (word, bit) = Self::bit(place);
        self.0[word] & bit != 0
    }

    fn bit(place: Place) -> (usize, u64) {
        (place as usize / 64 % 4, 1 << (place % 64))
    }
}

impl<'a> Order<'a> {
    pub(crate) fn new(fleet: &'a Snapshot, cluster: &'a Cluster, ty: &'a ResourceType, circular: bool) -> Self {
        Self { fleet, cluster, ty, circular, filter: OnceCell::new() }
    }

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
        let catalogue = self.fleet.catalogue(self.ty)?;
        let place = catalogue.find_place(id)?;
        let filter = self.filter.get_or_init(|| PlaceFilter::of(self.cluster.places(self.ty.position)));
        if !filter.may_have(place) {
            return None;
        }
        let (_, beside) = self.cluster.list(self.ty.position).find(|(it, _)| *it == place)?;
        Some((beside, catalogue.at(place)?.definition.as_deref()?))
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
