//! The fleet at one revision.
//!
//! All maps are persistent: a copy is a pointer, and a change to a copy costs what it touches. That is what makes a
//! new snapshot for every change affordable at any size of fleet.

mod dns_index;
mod loading;
mod writing;

use std::{collections::BTreeSet, sync::Arc};

use imbl::{GenericHashMap, OrdMap, shared_ptr::DefaultSharedPtr};
use model::{Document, Id, Kind, Point, Registry, ResourceType, Revision, TypeRecord, dns_spelling};
use roaring::RoaringBitmap;

use crate::{
    Cluster, Definition, Refusal,
    catalogue::{Catalogue, Entry},
    cluster::Reference,
    problems::ProblemIndex,
    slots::{Slot, Slots},
    types::Types,
};

use dns_index::DnsIndex;
pub(crate) use writing::DocumentKeys;

/// Why documents or a change do not make a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A document has content that validation does not allow.
    #[error("{kind} \"{id}\" of revision {revision} cannot be read: {what}")]
    Unreadable {
        /// The document's kind.
        kind: Kind,
        /// The document's id.
        id: Id,
        /// When it was written.
        revision: Revision,
        /// What is wrong.
        what: String,
    },
    /// A change does not follow on the snapshot, but on another or another's past.
    #[error("change {change} does not follow on {snapshot}")]
    OutOfOrder {
        /// Where the snapshot is.
        snapshot: Point,
        /// The change's revision.
        change: Revision,
    },
}

impl SnapshotError {
    pub(crate) fn unreadable(document: &Document, what: String) -> Self {
        Self::Unreadable { kind: document.kind.clone(), id: document.id.clone(), revision: document.revision, what }
    }
}

/// A map by names. Authenticated writers choose the names, so it does without the slower hasher that resists chosen keys.
type ByName<K, V> = GenericHashMap<K, V, foldhash::fast::RandomState, DefaultSharedPtr>;

/// The fleet at one revision. Never changed: applying a change makes the next one.
#[derive(Clone, Debug)]
pub struct Snapshot {
    registry: Arc<Registry>,
    point: Point,
    /// Live and decommissioned.
    clusters: Slots<Cluster>,
    by_id: OrdMap<Id, Slot>,
    by_dns: DnsIndex,
    /// The clusters that released each name. There are none, as a rule.
    released: OrdMap<Box<str>, BTreeSet<Id>>,
    /// By the type's position in the registry.
    catalogues: Vec<Catalogue>,
    /// The slots of the clusters, live or decommissioned, that patch something of a name.
    patching: ByName<Arc<str>, Arc<RoaringBitmap>>,
    /// Documents of kinds that no type declares. They are kept, since their type may come back. By id first, for that is how a
    /// poll looks for one.
    undeclared: OrdMap<(Id, Kind), Arc<Document>>,
    problems: ProblemIndex,
    types: Types,
}

impl Snapshot {
    /// A fleet without documents, at the beginning of a change log.
    #[must_use]
    pub fn empty(registry: Arc<Registry>) -> Self {
        let catalogues = registry.types().map(Catalogue::of_type).collect();
        Self {
            registry,
            point: Point::default(),
            clusters: Slots::default(),
            by_id: OrdMap::new(),
            by_dns: DnsIndex::default(),
            released: OrdMap::new(),
            catalogues,
            patching: ByName::default(),
            undeclared: OrdMap::new(),
            problems: ProblemIndex::default(),
            types: Types::default(),
        }
    }

    /// The last change in it.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.point.revision
    }

    /// Where in the history of the change log it is.
    #[must_use]
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// Everything that is known, in force or not, in no order.
    pub fn all_documents(&self) -> impl Iterator<Item = &Document> {
        let clusters = self.clusters().map(|cluster| &cluster.document);
        let definitions = self.catalogues.iter().flat_map(|it| it.definitions().map(|it| &it.document));
        clusters.chain(definitions).chain(self.undeclared.values().map(AsRef::as_ref)).chain(self.types.documents())
    }

    /// The resource types by which it was read.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All clusters, live and decommissioned, in the order of their ids.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.by_id.values().filter_map(|slot| self.clusters.get(*slot))
    }

    /// How many clusters there are, live and decommissioned.
    #[must_use]
    pub(crate) fn cluster_count(&self) -> usize {
        self.by_id.len()
    }

    /// The cluster that polls under a name: the live one or, if there is none, a decommissioned one.
    pub fn cluster_at(&self, name: &str) -> Result<&Cluster, Refusal> {
        let dns = &dns_spelling(name);
        let mut live = self.live_claims(dns);
        match (live.next(), live.next()) {
            (Some(cluster), None) => Ok(cluster),
            (Some(_), Some(_)) => Err(Refusal::AmbiguousDns(self.live_claims(dns).map(|it| it.id().clone()).collect())),
            (None, _) => self.claims(dns).next().ok_or(Refusal::UnknownCluster),
        }
    }

    /// The definition of a type by its id.
    #[must_use]
    pub fn definition(&self, ty: &ResourceType, id: &Id) -> Option<&Definition> {
        self.definition_by_name(ty, id.as_str())
    }

    /// The live clusters that refer to a definition, or to an id that has none.
    pub fn referrers(&self, ty: &ResourceType, id: &Id) -> impl Iterator<Item = &Id> + use<'_> {
        self.holders(ty, id).filter(|cluster| cluster.is_live()).map(Cluster::id)
    }

    /// The clusters, live or decommissioned, whose lists name an id.
    pub(crate) fn holders(&self, ty: &ResourceType, id: &Id) -> impl Iterator<Item = &Cluster> + use<'_> {
        let holders = self.catalogue(ty).and_then(|it| it.find(id.as_str())).map(|entry| &*entry.holders);
        self.at_slots(holders)
    }

    /// The clusters, live or decommissioned, that patch something of this name.
    pub(crate) fn patching(&self, name: &str) -> impl Iterator<Item = &Cluster> + use<'_> {
        self.at_slots(self.patching.get(name).map(AsRef::as_ref))
    }

    fn at_slots<'a>(&'a self, slots: Option<&'a RoaringBitmap>) -> impl Iterator<Item = &'a Cluster> + use<'a> {
        slots.into_iter().flatten().filter_map(|slot| self.clusters.get(slot))
    }

    /// The references of a cluster to a type, each with its definition, in their order.
    pub(crate) fn references<'a>(
        &'a self,
        cluster: &'a Cluster,
        ty: &ResourceType,
    ) -> impl Iterator<Item = (&'a Id, &'a Reference, Option<&'a Definition>)> + use<'a> {
        let catalogue = self.catalogue(ty);
        // Every slot in a list has an entry for as long as the list is there.
        cluster.references(ty.position).iter().filter_map(move |reference| {
            let Entry { id, definition, .. } = catalogue?.at(reference.slot)?;
            Some((id, reference, definition.as_deref()))
        })
    }

    pub(crate) fn catalogue(&self, ty: &ResourceType) -> Option<&Catalogue> {
        self.catalogues.get(ty.position)
    }

    /// How many problems its documents have.
    pub(crate) fn problem_index(&self) -> &ProblemIndex {
        &self.problems
    }

    /// This, with every type of its registry served, whatever is recorded.
    pub(crate) fn serving_all(mut self) -> Self {
        self.types.serve_all();
        self
    }

    /// The resource types as the change log records them.
    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// A document by its kind and id, in force or not, also one that no file declares.
    pub(crate) fn document_of_kind(&self, kind: &Kind, id: &Id) -> Option<&Document> {
        match self.registry.by_kind(kind.as_str()) {
            Some(ty) => self.document(ty, id),
            None if kind.as_str() == TypeRecord::KIND => self.types.document(id),
            None => self.undeclared.get(&(id.clone(), kind.clone())).map(AsRef::as_ref),
        }
    }

    /// Whether documents of a kind can be in the change log: a file declares it, a record remembers it, or some are there.
    #[must_use]
    pub fn knows_kind(&self, kind: &Kind) -> bool {
        self.registry.by_kind(kind.as_str()).is_some()
            || kind.as_str() == TypeRecord::KIND
            || Id::parse(kind.as_str()).is_ok_and(|id| self.types.document(&id).is_some())
            || self.undeclared.keys().any(|(_, known)| known == kind)
    }

    /// A document by its type and id, in force or not.
    #[must_use]
    pub fn document(&self, ty: &ResourceType, id: &Id) -> Option<&Document> {
        if ty.is_cluster() { Some(&self.cluster(id)?.document) } else { Some(&self.definition(ty, id)?.document) }
    }

    /// All documents of a type, in force or not, in the order of their ids.
    #[must_use]
    pub fn documents<'a>(&'a self, ty: &ResourceType) -> Box<dyn Iterator<Item = &'a Document> + 'a> {
        if ty.is_cluster() {
            Box::new(self.clusters().map(|cluster| &cluster.document))
        } else {
            let definitions = self.catalogue(ty).into_iter().flat_map(Catalogue::definitions);
            Box::new(definitions.map(|definition| &definition.document))
        }
    }

    /// A cluster by its id, in force or not.
    #[must_use]
    pub fn cluster(&self, id: &Id) -> Option<&Cluster> {
        self.clusters.get(*self.by_id.get(id)?)
    }

    /// Another kind than that of a type under which a definition has this id, declared by a type or by none.
    pub(crate) fn kind_elsewhere(&self, ty: &ResourceType, id: &Id) -> Option<&Kind> {
        let mut others = self.registry.definitions().filter(|other| other.kind != ty.kind);
        let declared = others.find_map(|other| Some(&self.definition(other, id)?.document.kind));
        declared.or_else(|| {
            let (known, kind) = self.undeclared.range((id.clone(), Kind::from(""))..).next()?.0;
            (known == id).then_some(kind)
        })
    }

    pub(crate) fn definition_by_name(&self, ty: &ResourceType, id: &str) -> Option<&Definition> {
        self.catalogue(ty)?.find(id)?.definition.as_deref()
    }

    /// The clusters, live or decommissioned, that had a name and have released it.
    pub(crate) fn released_by(&self, dns: &str) -> impl Iterator<Item = &Id> {
        self.released.get(dns).into_iter().flatten()
    }

    /// Notes which names a cluster has released, and no longer has.
    fn note_released(&mut self, was: Option<&Cluster>, is: Option<&Cluster>) {
        for (cluster, dns) in
            was.into_iter().flat_map(|it| it.released_dns().map(move |released| (it, &*released.name)))
        {
            if let Some(clusters) = self.released.get_mut(dns) {
                clusters.remove(cluster.id());
                if clusters.is_empty() {
                    self.released.remove(dns);
                }
            }
        }
        for (cluster, dns) in is.into_iter().flat_map(|it| it.released_dns().map(move |released| (it, &*released.name)))
        {
            self.released.entry(dns.into()).or_default().insert(cluster.id().clone());
        }
    }

    pub(crate) fn live_claims(&self, dns: &str) -> impl Iterator<Item = &Cluster> {
        self.claims(dns).filter(|cluster| cluster.is_live())
    }

    pub(crate) fn claims(&self, dns: &str) -> impl Iterator<Item = &Cluster> {
        self.by_dns.claims(dns).iter()
    }
}

#[cfg(test)]
mod tests;
