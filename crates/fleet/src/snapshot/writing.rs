//! How a change makes the next snapshot of one.

use std::{collections::BTreeSet, sync::Arc};

use model::{Change, Document, Id, Kind, ResourceType, State, TypeRecord};
use roaring::RoaringBitmap;

use super::{Snapshot, SnapshotError, loading::Defined};
use crate::{
    Cluster, Definition, Polls,
    catalogue::{Catalogue, Version, note},
    cluster::{NameIndex, Patches},
    cores::{FEW, on_spare_cores},
    problems::{Counts, check_document},
    slots::Slot,
};

/// The documents that may have other problems than before.
pub(super) enum Touched {
    /// Not recorded: all documents are examined afterwards.
    Unrecorded,
    /// These, and all definitions of types, by their positions, in which one came, went or depends on others than before.
    These { keys: DocumentKeys, reordered: BTreeSet<usize> },
}

/// Names of documents.
pub(crate) type DocumentKeys = BTreeSet<(Kind, Id)>;

impl Touched {
    fn document(&mut self, kind: &Kind, id: &Id) {
        if let Self::These { keys, .. } = self {
            keys.insert((kind.clone(), id.clone()));
        }
    }

    fn clusters<'a>(&mut self, clusters: impl Iterator<Item = &'a Cluster>) {
        if let Self::These { keys, .. } = self {
            keys.extend(clusters.map(|it| (it.document.kind.clone(), it.id().clone())));
        }
    }

    fn reordered(&mut self, ty: &ResourceType) {
        if let Self::These { reordered, .. } = self {
            reordered.insert(ty.position);
        }
    }

    /// Clusters other than the one of an id.
    fn others<'a>(&mut self, id: &Id, clusters: impl Iterator<Item = &'a Cluster>) {
        self.clusters(clusters.filter(|cluster| cluster.id() != id));
    }
}

impl Snapshot {
    /// The fleet after a change.
    pub fn apply(&self, change: &Change) -> Result<Self, SnapshotError> {
        self.apply_and_examine(change).map(|(next, _)| next)
    }

    /// The same, and the documents that may have other problems than before: of all others the problems are the same.
    pub(crate) fn apply_and_examine(&self, change: &Change) -> Result<(Self, DocumentKeys), SnapshotError> {
        if change.revision != self.point.revision.next() || change.parent != self.point.digest {
            return Err(SnapshotError::OutOfOrder { snapshot: self.point, change: change.revision });
        }
        let mut next = self.clone();
        next.point = self.point.after(change);
        let mut touched = Touched::These { keys: DocumentKeys::new(), reordered: BTreeSet::new() };
        for (write, cluster) in change.writes.iter().zip(self.read_ahead(change)) {
            match (write.document(change.revision), cluster) {
                (Some(_), Some(cluster)) => next.put_cluster(cluster, &mut touched),
                (Some(document), None) => next.put(document, &mut touched)?,
                (None, _) if write.kind.as_str() == TypeRecord::KIND => next.put_type(&write.id, None)?,
                (None, _) => next.remove(&write.kind, &write.id, &mut touched),
            }
        }
        let examined = next.examine(touched);
        Ok((next, examined))
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
                let definition = Arc::new(Definition::read(document, ty, self.catalogues[ty.position].defaults())?);
                let known = self.catalogues[ty.position].define(&id, Some(definition.clone()));
                if known.is_none() {
                    self.renew_missing(&id);
                }
                if known.is_none_or(|known| !known.is_ordered_as(&definition)) {
                    self.touch_referrers(ty, &id, touched);
                }
            }
            None if kind.as_str() == TypeRecord::KIND => return self.put_type(&id, Some(document)),
            None => {
                self.undeclared.insert((id.clone(), kind.clone()), Arc::new(document.packed()));
                self.renew();
            }
        }
        touched.document(&kind, &id);
        Ok(())
    }

    /// Adds or removes the record of a resource type.
    fn put_type(&mut self, id: &Id, document: Option<Document>) -> Result<(), SnapshotError> {
        let registry = self.registry.clone();
        self.types.put(id, document, &registry)?;
        self.renew();
        Ok(())
    }

    /// How a cluster polled that may be there already.
    fn polls_of(&self, id: &Id) -> Polls {
        self.cluster(id).map_or_else(|| Polls::new(self.catalogues.len()), |known| known.polls.clone())
    }

    fn put_cluster(&mut self, cluster: Cluster, touched: &mut Touched) {
        let id = cluster.id().clone();
        let known = self.by_id.get(&id).copied();
        let was = known.and_then(|slot| self.clusters.get(slot)).cloned();
        let slot = known.unwrap_or_else(|| self.clusters.insert(cluster.clone()));
        for dns in cluster.dns_names() {
            self.by_dns.claim(dns, &id, Some(&cluster));
        }
        for dns in was.iter().flat_map(Cluster::dns_names).filter(|dns| !cluster.answers_to(dns)) {
            self.by_dns.claim(dns, &id, None);
        }
        self.note_released(was.as_ref(), Some(&cluster));
        self.link(slot, was.as_ref(), Some(&cluster));
        if let Some(was) = was {
            self.clusters.replace(slot, cluster.clone());
            was.dns_names().for_each(|dns| touched.others(&id, self.live_claims(dns)));
        } else {
            self.by_id.insert(id.clone(), slot);
        }
        cluster.dns_names().for_each(|dns| touched.others(&id, self.live_claims(dns)));
        touched.document(&cluster.document.kind, &id);
    }

    /// Reads the clusters of a large change that is about nothing else, side by side. Those that refer to what is not defined, or
    /// cannot be read, are left out.
    fn read_ahead(&self, change: &Change) -> Vec<Option<Cluster>> {
        let clusters = self.registry.by_kind(ResourceType::CLUSTER);
        let is_all_clusters =
            |ty: &&ResourceType| change.writes.len() > FEW && change.writes.iter().all(|it| it.kind == ty.kind);
        let Some(ty) = clusters.filter(is_all_clusters) else {
            return change.writes.iter().map(|_| None).collect();
        };
        let defined = Defined(&self.catalogues);
        on_spare_cores(change.writes.iter().collect(), |write| {
            let document = Document { kind: ty.kind.clone(), ..write.document(change.revision)? };
            Cluster::read(&document, &self.registry, &mut { defined }, self.polls_of(&write.id)).ok()
        })
    }

    fn remove(&mut self, kind: &Kind, id: &Id, touched: &mut Touched) {
        let registry = self.registry.clone();
        match registry.by_kind(kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                if let Some(slot) = self.by_id.remove(id)
                    && let Some(cluster) = self.clusters.get(slot).cloned()
                {
                    cluster.dns_names().for_each(|dns| self.by_dns.claim(dns, id, None));
                    self.note_released(Some(&cluster), None);
                    self.link(slot, Some(&cluster), None);
                    self.clusters.remove(slot);
                    cluster.dns_names().for_each(|dns| touched.clusters(self.live_claims(dns)));
                }
            }
            Some(ty) => {
                self.catalogues[ty.position].define(id, None);
                self.renew_missing(id);
                self.touch_referrers(ty, id, touched);
            }
            None => {
                self.undeclared.remove(&(id.clone(), kind.clone()));
                self.renew();
            }
        }
        touched.document(kind, id);
    }

    /// Updates the indexes of slots from what a cluster was to what it is.
    fn link<'a>(&mut self, slot: Slot, was: Option<&'a Cluster>, is: Option<&'a Cluster>) {
        for (position, catalogue) in self.catalogues.iter_mut().enumerate() {
            let slots = |cluster: Option<&'a Cluster>| cluster.into_iter().flat_map(move |it| it.slots(position));
            if !slots(was).eq(slots(is)) {
                for definition in slots(is) {
                    catalogue.hold(definition, slot, true);
                }
                let kept: RoaringBitmap = slots(is).collect();
                for definition in slots(was).filter(|definition| !kept.contains(*definition)) {
                    catalogue.hold(definition, slot, false);
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
                note(patching, slot, false);
                if patching.is_empty() {
                    self.patching.remove(name);
                }
            }
        }
        for Patches { name, .. } in new {
            if was.is_none_or(|was| was.patches_of(name).is_none()) {
                note(self.patching.entry(name.clone()).or_default(), slot, true);
            }
        }
    }

    /// Gives every catalogue a new version, so that no compressed answer is used again.
    fn renew(&mut self) {
        self.catalogues.iter_mut().for_each(|catalogue| catalogue.version = Version::new());
    }

    /// The same for the catalogues of types whose lists refer to an id that is not defined: whether the id is defined as another
    /// kind makes a difference there.
    fn renew_missing(&mut self, id: &Id) {
        let is_missing =
            |catalogue: &&mut Catalogue| catalogue.find(id.as_str()).is_some_and(|it| it.definition.is_none());
        self.catalogues.iter_mut().filter(is_missing).for_each(|catalogue| catalogue.version = Version::new());
    }

    /// A definition came, went or moved in the order: the clusters that refer to it or patch it may have one problem more or
    /// less.
    fn touch_referrers(&self, ty: &ResourceType, id: &Id, touched: &mut Touched) {
        touched.reordered(ty);
        touched.clusters(self.holders(ty, id));
        if ty.patchable {
            touched.clusters(self.patching(id.as_str()));
        }
    }

    /// Counts the problems of documents anew; answers which documents these were.
    pub(super) fn examine(&mut self, touched: Touched) -> DocumentKeys {
        let Touched::These { mut keys, reordered } = touched else { return DocumentKeys::new() };
        let registry = self.registry.clone();
        // A dependency that comes or goes can close or open a cycle anywhere in its catalogue.
        for ty in registry.definitions().filter(|ty| ty.ordered_by.is_some() && reordered.contains(&ty.position)) {
            let catalogue = &mut self.catalogues[ty.position];
            catalogue.find_cycles();
            let all = catalogue.definitions();
            keys.extend(all.map(|definition| (ty.kind.clone(), definition.document.id.clone())));
        }
        let counted = on_spare_cores(keys.iter().collect(), |key: &(Kind, Id)| {
            let mut counts = Counts::default();
            if let Some(document) = self.document_of_kind(&key.0, &key.1) {
                check_document(self, document, &mut counts);
            }
            (key, counts)
        });
        for (key, counts) in counted {
            self.problems.set(key.clone(), counts);
        }
        keys
    }
}

/// The slots and names of a snapshot that is being changed.
struct Known<'a> {
    catalogues: &'a mut [Catalogue],
    patching: &'a super::ByName<Arc<str>, Arc<RoaringBitmap>>,
}

impl NameIndex for Known<'_> {
    fn slot(&mut self, ty: &ResourceType, id: &str) -> Result<Slot, String> {
        let slot = self.catalogues[ty.position].slot_or_insert(id);
        slot.map_err(|error| format!("a reference to \"{id}\": {error}"))
    }

    fn shared_name(&mut self, name: &str) -> Arc<str> {
        self.patching.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone())
    }
}
