//! How a snapshot comes to be of another one and a change.

use std::{collections::BTreeSet, sync::Arc};

use model::{Change, Document, Id, Kind, ResourceType, State};
use roaring::RoaringBitmap;

use super::{Snapshot, SnapshotError, loading::Seen};
use crate::{
    Cluster, Definition, Polls, Problem, Rule,
    catalogue::{Catalogue, Version, note},
    cluster::{Names, Patches},
    cores::{FEW, beside_polls},
    problems,
    slots::Place,
};

/// The documents that may have other problems than before.
pub(super) enum Touched {
    /// That is known without being told.
    Known,
    /// These.
    These(Keys),
}

/// Names of documents.
pub(super) type Keys = BTreeSet<(Kind, Id)>;

impl Touched {
    fn document(&mut self, kind: &Kind, id: &Id) {
        if let Self::These(keys) = self {
            keys.insert((kind.clone(), id.clone()));
        }
    }

    fn clusters<'a>(&mut self, clusters: impl Iterator<Item = &'a Cluster>) {
        if let Self::These(keys) = self {
            keys.extend(clusters.map(|it| (it.document.kind.clone(), it.id().clone())));
        }
    }

    /// Clusters beside one that is told by itself.
    fn others<'a>(&mut self, id: &Id, clusters: impl Iterator<Item = &'a Cluster>) {
        self.clusters(clusters.filter(|cluster| cluster.id() != id));
    }
}

impl Snapshot {
    /// The fleet after a change.
    pub fn apply(&self, change: &Change) -> Result<Self, SnapshotError> {
        if change.revision != self.point.revision.next() || change.parent != self.point.digest {
            return Err(SnapshotError::OutOfOrder { snapshot: self.point, change: change.revision });
        }
        let mut next = self.clone();
        next.point = self.point.after(change);
        let mut touched = Touched::These(Keys::new());
        for (write, cluster) in change.writes.iter().zip(self.read_ahead(change)) {
            match (write.document(change.revision), cluster) {
                (Some(_), Some(cluster)) => next.put_cluster(cluster, &mut touched),
                (Some(document), None) => next.put(document, &mut touched)?,
                (None, _) => next.remove(&write.kind, &write.id, &mut touched),
            }
        }
        if let Touched::These(keys) = touched {
            next.examine(keys);
        }
        Ok(next)
    }

    pub(super) fn put(&mut self, document: Document, touched: &mut Touched) -> Result<(), SnapshotError> {
        let registry = self.registry.clone();
        let (kind, id) = (document.kind.clone(), document.id.clone());
        match registry.by_kind(kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                let document = Document { kind: ty.kind.clone(), ..document };
                let polls = self.polls_of(&id);
                let mut names = Known { catalogues: &mut self.catalogues, patching: &self.patching };
                let cluster = Cluster::read(&document, &registry, &mut names, polls)?;
                self.put_cluster(cluster, touched);
            }
            // Only clusters have tombstones; any other document that is not in force is not there.
            Some(_) if document.state == State::Retired => self.remove(&kind, &id, touched),
            Some(ty) => {
                let definition = Arc::new(Definition::read(document, ty)?);
                let known = self.catalogues[ty.position].define(&id, Some(definition.clone()));
                if known.is_none_or(|known| !known.is_ordered_as(&definition)) {
                    self.touch_referrers(ty, &id, touched);
                }
            }
            None => {
                self.strangers.insert((kind.clone(), id.clone()), Arc::new(document.packed()));
                self.renew();
            }
        }
        touched.document(&kind, &id);
        Ok(())
    }

    /// How a cluster polled that may be there already.
    fn polls_of(&self, id: &Id) -> Polls {
        self.cluster(id).map_or_else(|| Polls::new(self.catalogues.len()), |known| known.polls.clone())
    }

    fn put_cluster(&mut self, cluster: Cluster, touched: &mut Touched) {
        let id = cluster.id().clone();
        let known = self.by_id.get(&id).copied();
        let was = known.and_then(|place| self.clusters.get(place)).cloned();
        let place = known.unwrap_or_else(|| self.clusters.insert(cluster.clone()));
        self.by_dns.claim(cluster.dns(), &id, Some(&cluster));
        if let Some(was) = was.as_ref().filter(|was| was.dns() != cluster.dns()) {
            self.by_dns.claim(was.dns(), &id, None);
        }
        self.link(place, was.as_ref(), Some(&cluster));
        if let Some(was) = was {
            self.clusters.replace(place, cluster.clone());
            touched.others(&id, self.live_claims(was.dns()));
        } else {
            self.by_id.insert(id.clone(), place);
        }
        touched.others(&id, self.live_claims(cluster.dns()));
        touched.document(&cluster.document.kind, &id);
    }

    /// Reads the clusters of a large change that is about nothing else, side by side. Those that name what is not defined, or
    /// cannot be read, are left.
    fn read_ahead(&self, change: &Change) -> Vec<Option<Cluster>> {
        let clusters = self.registry.by_kind(ResourceType::CLUSTER);
        let alike = |ty: &&ResourceType| change.writes.len() > FEW && change.writes.iter().all(|it| it.kind == ty.kind);
        let Some(ty) = clusters.filter(alike) else {
            return change.writes.iter().map(|_| None).collect();
        };
        let seen = Seen::of(self);
        beside_polls(change.writes.iter().collect(), |write| {
            let document = Document { kind: ty.kind.clone(), ..write.document(change.revision)? };
            Cluster::read(&document, &self.registry, &mut &seen, self.polls_of(&write.id)).ok()
        })
    }

    fn remove(&mut self, kind: &Kind, id: &Id, touched: &mut Touched) {
        let registry = self.registry.clone();
        match registry.by_kind(kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                if let Some(place) = self.by_id.remove(id)
                    && let Some(cluster) = self.clusters.get(place).cloned()
                {
                    self.by_dns.claim(cluster.dns(), id, None);
                    self.link(place, Some(&cluster), None);
                    self.clusters.remove(place);
                    touched.clusters(self.live_claims(cluster.dns()));
                }
            }
            Some(ty) => {
                self.catalogues[ty.position].define(id, None);
                self.touch_referrers(ty, id, touched);
            }
            None => {
                self.strangers.remove(&(kind.clone(), id.clone()));
                self.renew();
            }
        }
        touched.document(kind, id);
    }

    /// Brings the indexes of places from what a cluster was to what it is.
    fn link<'a>(&mut self, place: Place, was: Option<&'a Cluster>, is: Option<&'a Cluster>) {
        for (position, catalogue) in self.catalogues.iter_mut().enumerate() {
            let places = |cluster: Option<&'a Cluster>| cluster.into_iter().flat_map(move |it| it.places(position));
            if !places(was).eq(places(is)) {
                for definition in places(is) {
                    catalogue.hold(definition, place, true);
                }
                let kept: RoaringBitmap = places(is).collect();
                for definition in places(was).filter(|definition| !kept.contains(*definition)) {
                    catalogue.hold(definition, place, false);
                }
            }
        }
        let (old, new) = (was.map_or(&[][..], Cluster::patches), is.map_or(&[][..], Cluster::patches));
        if old.iter().map(|patches| &patches.name).eq(new.iter().map(|patches| &patches.name)) {
            return;
        }
        for Patches { name, .. } in old {
            if is.is_none_or(|is| is.patches_of(name).is_none())
                && let Some(patching) = self.patching.get_mut(name)
            {
                note(patching, place, false);
                if patching.is_empty() {
                    self.patching.remove(name);
                }
            }
        }
        for Patches { name, .. } in new {
            if was.is_none_or(|was| was.patches_of(name).is_none()) {
                note(self.patching.entry(name.clone()).or_default(), place, true);
            }
        }
    }

    /// Lets no answer be taken for one of before.
    fn renew(&mut self) {
        self.catalogues.iter_mut().for_each(|catalogue| catalogue.version = Version::new());
    }

    /// A definition came, went or moved in the order: whoever refers to it or patches it may have one problem more or
    /// less.
    fn touch_referrers(&self, ty: &ResourceType, id: &Id, touched: &mut Touched) {
        touched.clusters(self.holders(ty, id));
        if ty.patchable {
            touched.clusters(self.patching(id.as_str()));
        }
    }

    /// Finds the problems of documents anew.
    pub(super) fn examine(&mut self, mut keys: Keys) {
        // A dependency that comes or goes can close or open a circle anywhere in its catalogue.
        let registry = self.registry.clone();
        for ty in registry.definitions().filter(|ty| ty.ordered_by.is_some()) {
            if keys.iter().any(|(kind, _)| *kind == ty.kind) {
                let all = self.catalogues[ty.position].definitions();
                keys.extend(all.map(|definition| (ty.kind.clone(), definition.document.id.clone())));
                self.catalogues[ty.position].circular = false;
            }
        }
        let is_cluster = |kind: &Kind| registry.by_kind(kind.as_str()).is_some_and(ResourceType::is_cluster);
        let (clusters, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(kind, _)| is_cluster(kind));
        let of_clusters = beside_polls(clusters, |key| {
            let found = self.cluster(&key.1).map(|it| problems::of_cluster(self, it));
            (key, found)
        });
        for (key, found) in of_clusters {
            self.note_problems(key, found);
        }
        for key in others {
            let (kind, id) = &key;
            let found = match registry.by_kind(kind.as_str()) {
                Some(ty) => {
                    let found = self.definition(ty, id).map(|it| problems::of_definition(self, it));
                    let is_circle = |problem: &Problem| problem.rule == Rule::DependencyCycle;
                    self.catalogues[ty.position].circular |= found.iter().flatten().any(is_circle);
                    found
                }
                None => self.strangers.get(&key).map(|it| vec![problems::of_stranger(it)]),
            };
            self.note_problems(key, found);
        }
    }

    fn note_problems(&mut self, key: (Kind, Id), found: Option<Vec<Problem>>) {
        match found {
            Some(found) if !found.is_empty() => drop(self.problems.insert(key, found.into())),
            _ => drop(self.problems.remove(&key)),
        }
    }
}

/// What has a name in a snapshot that is being made.
struct Known<'a> {
    catalogues: &'a mut [Catalogue],
    patching: &'a super::ByName<Arc<str>, Arc<RoaringBitmap>>,
}

impl Names for Known<'_> {
    fn place(&mut self, ty: &ResourceType, id: &str) -> Result<Place, String> {
        let place = self.catalogues[ty.position].place(id);
        place.map_err(|error| format!("a reference to \"{id}\": {error}"))
    }

    fn find(&self, ty: &ResourceType, id: &str) -> Option<Place> {
        self.catalogues[ty.position].find_place(id)
    }

    fn patched(&mut self, name: &str) -> Arc<str> {
        self.patching.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone())
    }
}
