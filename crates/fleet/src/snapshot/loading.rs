//! A whole fleet at once, on all cores: a start waits for this.
//!
//! Reading a cluster's text takes most of the time and needs nothing but the catalogue, so definitions come first and
//! clusters are read side by side. The indexes are filled afterwards, those of places beside those of names, and each set from
//! sorted numbers in one go.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use model::{Document, Id, Point, Registry, ResourceType};
use roaring::RoaringBitmap;

use super::{ByName, Snapshot, SnapshotError, writing::Touched};
use crate::{
    Cluster,
    catalogue::Catalogue,
    cluster::Names,
    cores::{both, on_all_cores},
    problems,
    slots::Place,
};

impl Snapshot {
    /// The fleet at a point of the log, from all its documents; from all or not at all.
    pub fn load(
        registry: Arc<Registry>,
        point: Point,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Self, SnapshotError> {
        let mut fleet = Self::empty(registry);
        fleet.point = point;
        let (clusters, others): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|document| document.kind.as_str() == ResourceType::CLUSTER);
        for document in others {
            fleet.put(document, &mut Touched::Known)?;
        }
        fleet.enter(clusters)?;
        fleet.examine_all();
        Ok(fleet)
    }

    /// Takes in clusters.
    fn enter(&mut self, documents: Vec<Document>) -> Result<(), SnapshotError> {
        let seen = Seen::of(self);
        let read = on_all_cores(documents, |document| match Cluster::read(&document, &self.registry, &mut &seen) {
            Ok(cluster) => Ok(Arc::new(cluster)),
            Err(_) => Err(document),
        });
        let (mut entered, mut waiting) = (Vec::with_capacity(read.len()), Vec::new());
        let mut ids = HashSet::with_capacity_and_hasher(read.len(), RandomState::default());
        for cluster in read {
            match cluster {
                Ok(cluster) if ids.insert(cluster.id().clone()) => {
                    entered.push((self.clusters.insert(cluster.clone()), cluster));
                }
                Ok(cluster) => waiting.push(cluster.document.clone()),
                Err(document) => waiting.push(document),
            }
        }
        let Self { by_id, by_dns, catalogues, patching, .. } = self;
        let index_places = || {
            hold(catalogues, &entered);
            *patching = patching_of(&entered);
        };
        let index_names = || {
            for (place, cluster) in &entered {
                by_id.insert(cluster.id().clone(), *place);
                by_dns.claim(cluster.dns(), cluster.id(), Some(cluster));
            }
        };
        both(entered.len(), index_places, index_names);
        // What names something that is not defined, or cannot be read.
        waiting.into_iter().try_for_each(|document| self.put(document, &mut Touched::Known))
    }

    /// Finds the problems of all documents.
    fn examine_all(&mut self) {
        let others = self.all_documents().filter(|document| document.kind.as_str() != ResourceType::CLUSTER);
        self.examine(others.map(|document| (document.kind.clone(), document.id.clone())).collect());
        let found = on_all_cores(self.clusters().collect(), |cluster| problems::of_cluster(self, cluster));
        for problems in found {
            if let Some(first) = problems.first() {
                self.problems.insert((first.kind.clone(), first.id.clone()), problems.into());
            }
        }
    }
}

/// Notes who names what.
fn hold(catalogues: &mut [Catalogue], clusters: &[(Place, Arc<Cluster>)]) {
    for (position, catalogue) in catalogues.iter_mut().enumerate() {
        let mut holders: Vec<Vec<Place>> = Vec::new();
        for (place, cluster) in clusters {
            for definition in cluster.places(position) {
                let at = *definition as usize;
                if at >= holders.len() {
                    holders.resize_with(at + 1, Vec::new);
                }
                // Twice in one list is once.
                if holders[at].last() != Some(place) {
                    holders[at].push(*place);
                }
            }
        }
        for (definition, places) in (0..).zip(holders) {
            catalogue.hold_all(definition, sorted(&places));
        }
    }
}

/// Who patches what.
fn patching_of(clusters: &[(Place, Arc<Cluster>)]) -> ByName<Arc<str>, Arc<RoaringBitmap>> {
    let mut patching: HashMap<&Arc<str>, Vec<Place>, RandomState> = HashMap::default();
    for (place, cluster) in clusters {
        for patches in cluster.patches() {
            patching.entry(&patches.name).or_default().push(*place);
        }
    }
    patching.into_iter().map(|(name, places)| (name.clone(), Arc::new(sorted(&places)))).collect()
}

/// A set of places that were taken one after the other.
fn sorted(places: &[Place]) -> RoaringBitmap {
    // Where many are in the set it is made of its bits, which is less work than to put in one after the other.
    let bytes = places.iter().max().map_or(0, |last| *last as usize / 8 + 1);
    if bytes > 4 * places.len() {
        return places.iter().copied().collect();
    }
    let mut bits = vec![0_u8; bytes];
    for place in places {
        bits[*place as usize / 8] |= 1 << (place % 8);
    }
    RoaringBitmap::from_lsb0_bytes(0, &bits)
}

/// The definitions that there are, by name. What is not defined has no place here: while clusters change, it could lose it.
pub(super) struct Seen<'a> {
    /// By the type's position.
    places: Vec<HashMap<&'a str, (&'a Id, Place), RandomState>>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(fleet: &'a Snapshot) -> Self {
        let places = |(id, place): (&'a Id, Place)| (id.as_str(), (id, place));
        Self { places: fleet.catalogues.iter().map(|catalogue| catalogue.places().map(places).collect()).collect() }
    }
}

impl Names for &Seen<'_> {
    fn place(&mut self, ty: &ResourceType, id: &str) -> Result<Place, String> {
        // The cluster is read again by itself.
        self.find(ty, id).ok_or_else(|| "it is not defined".to_owned())
    }

    fn find(&self, ty: &ResourceType, id: &str) -> Option<Place> {
        self.places.get(ty.position)?.get(id).map(|(_, place)| *place)
    }

    fn patched(&mut self, name: &str) -> Arc<str> {
        let found = self.places.iter().find_map(|places| places.get(name));
        found.map_or_else(|| name.into(), |(id, _)| id.shared())
    }
}
