//! A whole fleet at once, on all cores: a start waits for this.
//!
//! Reading a cluster's text takes most of the time and needs nothing but the catalogue, so definitions come first and
//! clusters are read side by side. The indexes are filled afterwards, each set from sorted numbers in one go.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use model::{Document, Id, Point, Registry, ResourceType};
use roaring::RoaringBitmap;

use super::{Snapshot, SnapshotError, writing::Touched};
use crate::{Cluster, cluster::Names, cores::on_all_cores, problems, slots::Place};

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
        let mut waiting = Vec::new();
        let mut holders: Vec<Vec<Vec<Place>>> = self.catalogues.iter().map(|_| Vec::new()).collect();
        let mut patching: HashMap<Arc<str>, Vec<Place>, RandomState> = HashMap::default();
        for cluster in read {
            let cluster = match cluster {
                Ok(cluster) if !self.by_id.contains_key(cluster.id()) => cluster,
                Ok(cluster) => {
                    waiting.push(cluster.document.clone());
                    continue;
                }
                Err(document) => {
                    waiting.push(document);
                    continue;
                }
            };
            let place = self.clusters.insert(cluster.clone());
            self.by_id.insert(cluster.id().clone(), place);
            self.by_dns.claim(cluster.dns(), cluster.id(), Some(&cluster));
            for (position, holders) in holders.iter_mut().enumerate() {
                for definition in cluster.places(position) {
                    let at = *definition as usize;
                    holders.resize_with(holders.len().max(at + 1), Vec::new);
                    // Twice in one list is once.
                    if holders[at].last() != Some(&place) {
                        holders[at].push(place);
                    }
                }
            }
            for patches in cluster.patches() {
                match patching.get_mut(&patches.name) {
                    Some(places) => places.push(place),
                    None => drop(patching.insert(patches.name.clone(), vec![place])),
                }
            }
        }
        for (catalogue, holders) in self.catalogues.iter_mut().zip(holders) {
            for (definition, places) in (0..).zip(holders) {
                catalogue.hold_all(definition, sorted(places));
            }
        }
        self.patching = patching.into_iter().map(|(name, places)| (name, Arc::new(sorted(places)))).collect();
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

/// A set of places that were taken one after the other.
fn sorted(places: Vec<Place>) -> RoaringBitmap {
    RoaringBitmap::from_sorted_iter(places.iter().copied()).unwrap_or_else(|_| places.into_iter().collect())
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
