//! Which dependencies Flux can keep on one cluster.
//!
//! The catalogue lists what a component depends on; a cluster has some of these, and Flux waits for ever for one that
//! it does not have, cannot order a Helm release after a Kustomization, and does not notice a circle. So a cluster is
//! served only the dependencies that hold there.

use std::cell::OnceCell;

use model::{ResourceType, Value};

use crate::{Cluster, Definition, catalogue::Catalogue, cycles::Cycles, slots::Slot};

/// What Flux makes of a component. It orders within one kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    HelmRelease,
    Kustomization,
}

impl Delivery {
    /// By where a component comes from, and what is there: an OCI registry holds manifests unless `oci_content` is `chart`.
    pub(crate) fn from_source(url: Option<&Value>, content: Option<&Value>) -> Self {
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
    catalogue: &'a Catalogue,
    cluster: &'a Cluster,
    position: usize,
    /// The slots of the components that the cluster has enabled, sorted. Computed for the first dependency.
    enabled: OnceCell<Vec<Slot>>,
    /// The cycles between these, by where they are in that list. Made when a dependency is in a cycle of the catalogue, which
    /// few ever are.
    cycles: OnceCell<Cycles>,
}

impl<'a> Order<'a> {
    pub(crate) fn new(catalogue: &'a Catalogue, cluster: &'a Cluster, ty: &ResourceType) -> Self {
        Self { catalogue, cluster, position: ty.position, enabled: OnceCell::new(), cycles: OnceCell::new() }
    }

    /// What a component must wait for, without what waits for it in turn.
    pub(crate) fn dependencies(&self, of: &'a Definition) -> impl Iterator<Item = &'a str> {
        let id = of.document.id.as_str();
        // A cluster has a part of the catalogue: what is in no cycle there is in none here.
        self.possible(of)
            .map(|(_, on)| on)
            .filter(|on| !self.catalogue.is_in_cycle(id, on) || !self.is_in_cycle(id, on))
    }

    /// What a component depends on and the cluster can wait for, each once, with where in the list of what is enabled it is.
    fn possible(&self, of: &'a Definition) -> impl Iterator<Item = (usize, &'a str)> {
        of.depends_on.iter().filter(|on| !on.is_repeated).filter_map(|on| {
            let found = self.find(&on.id)?;
            let definition = self.catalogue.definition_at(self.enabled()[found])?;
            (definition.delivery == of.delivery).then_some((found, &*on.id))
        })
    }

    /// Where in the list of what is enabled a component is.
    fn find(&self, id: &str) -> Option<usize> {
        let slot = self.catalogue.find_slot(id)?;
        self.enabled().binary_search(&slot).ok()
    }

    fn enabled(&self) -> &[Slot] {
        self.enabled.get_or_init(|| self.cluster.enabled_slots(self.position))
    }

    /// Whether a component waits for another that waits for it in turn, on this cluster.
    fn is_in_cycle(&self, id: &str, on: &str) -> bool {
        let cycles = self.cycles.get_or_init(|| {
            let edges = |slot: &Slot| {
                let of = self.catalogue.definition_at(*slot).into_iter();
                of.flat_map(|of| self.possible(of)).map(|(on, _)| on).collect()
            };
            Cycles::find(&self.enabled().iter().map(edges).collect::<Vec<_>>())
        });
        self.find(id).zip(self.find(on)).is_some_and(|(from, to)| cycles.contain(from, to))
    }
}
