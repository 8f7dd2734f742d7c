//! The fleet at one revision.
//!
//! All maps are persistent: a copy is a pointer, and a change to a copy costs what it touches. That is what makes a
//! new snapshot for every change affordable at any size of fleet.

use std::{collections::BTreeSet, sync::Arc};

use imbl::{HashMap, OrdMap, OrdSet};
use model::{Change, ClusterDns, Document, Id, Kind, Point, Registry, ResourceType, Revision, State};

use crate::{Cluster, Definition, Problem, Refusal, problems};

/// Why documents or a change do not make a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A document says something that it could not have been allowed to say.
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

/// The definitions of one type, and who refers to them.
#[derive(Clone, Debug, Default)]
struct Catalogue {
    definitions: OrdMap<Id, Arc<Definition>>,
    /// The live clusters that refer to an id, whether it is defined or not.
    referrers: HashMap<Id, OrdSet<Id>>,
}

/// The fleet at one revision. Never changed: applying a change makes the next one.
#[derive(Clone, Debug)]
pub struct Snapshot {
    registry: Arc<Registry>,
    point: Point,
    /// Live and decommissioned.
    clusters: OrdMap<Id, Arc<Cluster>>,
    /// The clusters that claim a DNS name: one live cluster at most, if all is well, and any number of tombstones.
    by_dns: HashMap<ClusterDns, OrdSet<Id>>,
    /// By the type's position in the registry.
    catalogues: Vec<Catalogue>,
    /// Documents of kinds that no type declares. They are kept, since their type may come back.
    strangers: OrdMap<(Kind, Id), Arc<Document>>,
    problems: OrdMap<(Kind, Id), Arc<[Problem]>>,
}

impl Snapshot {
    /// A fleet without documents, of no log.
    #[must_use]
    pub fn empty(registry: Arc<Registry>) -> Self {
        let catalogues = registry.types().map(|_| Catalogue::default()).collect();
        Self {
            registry,
            point: Point::default(),
            clusters: OrdMap::new(),
            by_dns: HashMap::new(),
            catalogues,
            strangers: OrdMap::new(),
            problems: OrdMap::new(),
        }
    }

    /// The fleet at a point of the log, from all its documents; from all or not at all.
    pub fn load(
        registry: Arc<Registry>,
        point: Point,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Self, SnapshotError> {
        let mut fleet = Self::empty(registry);
        fleet.point = point;
        let mut touched = BTreeSet::new();
        // Clusters come last, so that no definition that arrives has to look for those that wait for it.
        let (clusters, definitions): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|document| document.kind.as_str() == ResourceType::CLUSTER);
        for document in definitions.into_iter().chain(clusters) {
            fleet.put(document, &mut touched)?;
        }
        fleet.examine(touched);
        Ok(fleet)
    }

    /// The fleet after a change.
    pub fn apply(&self, change: &Change) -> Result<Self, SnapshotError> {
        if change.revision != self.point.revision.next() || change.parent != self.point.digest {
            return Err(SnapshotError::OutOfOrder { snapshot: self.point, change: change.revision });
        }
        let mut next = self.clone();
        next.point = self.point.after(change);
        let mut touched = BTreeSet::new();
        for write in &change.writes {
            match write.document(change.revision) {
                Some(document) => next.put(document, &mut touched)?,
                None => next.remove(&write.kind, &write.id, &mut touched),
            }
        }
        next.examine(touched);
        Ok(next)
    }

    /// The last change in it.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.point.revision
    }

    /// Where in the history of the log it is.
    #[must_use]
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// Everything that is known, in force or not, in no order.
    pub fn all_documents(&self) -> impl Iterator<Item = &Document> {
        let clusters = self.clusters.values().map(|cluster| &cluster.document);
        let definitions = self.catalogues.iter().flat_map(|it| it.definitions.values().map(|it| &it.document));
        clusters.chain(definitions).chain(self.strangers.values().map(AsRef::as_ref))
    }

    /// The resource types by which it was read.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All clusters, live and decommissioned, in the order of their ids.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.values().map(AsRef::as_ref)
    }

    /// The cluster that polls under a name: the live one or, if there is none, a decommissioned one.
    pub fn cluster_at(&self, dns: &ClusterDns) -> Result<&Cluster, Refusal> {
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
        self.catalogues.get(ty.position).and_then(|it| it.referrers.get(id)).into_iter().flatten()
    }

    /// Everything that is wrong with its documents, in their order.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.values().flat_map(|problems| problems.iter())
    }

    /// A document by its type and id, in force or not.
    #[must_use]
    pub fn document(&self, ty: &ResourceType, id: &Id) -> Option<&Document> {
        if ty.is_cluster() { Some(&self.clusters.get(id)?.document) } else { Some(&self.definition(ty, id)?.document) }
    }

    /// All documents of a type, in force or not, in the order of their ids.
    #[must_use]
    pub fn documents<'a>(&'a self, ty: &ResourceType) -> Box<dyn Iterator<Item = &'a Document> + 'a> {
        if ty.is_cluster() {
            Box::new(self.clusters.values().map(|cluster| &cluster.document))
        } else {
            let definitions = self.catalogues.get(ty.position).into_iter().flat_map(|it| it.definitions.values());
            Box::new(definitions.map(|definition| &definition.document))
        }
    }

    /// A cluster by its id, in force or not.
    #[must_use]
    pub fn cluster(&self, id: &Id) -> Option<&Cluster> {
        self.clusters.get(id).map(AsRef::as_ref)
    }

    /// Whether a document of a kind that no type declares has this id.
    pub(crate) fn is_stranger(&self, id: &Id) -> bool {
        self.strangers.keys().any(|(_, stranger)| stranger == id)
    }

    pub(crate) fn definition_by_name(&self, ty: &ResourceType, id: &str) -> Option<&Definition> {
        self.catalogues.get(ty.position)?.definitions.get(id).map(AsRef::as_ref)
    }

    pub(crate) fn live_claims(&self, dns: &ClusterDns) -> impl Iterator<Item = &Cluster> {
        self.claims(dns).filter(|cluster| cluster.is_live())
    }

    pub(crate) fn claims(&self, dns: &ClusterDns) -> impl Iterator<Item = &Cluster> {
        let ids = self.by_dns.get(dns).into_iter().flatten();
        ids.filter_map(|id| self.clusters.get(id)).map(AsRef::as_ref)
    }

    fn put(&mut self, document: Document, touched: &mut BTreeSet<(Kind, Id)>) -> Result<(), SnapshotError> {
        let registry = self.registry.clone();
        let (kind, id) = (document.kind.clone(), document.id.clone());
        match registry.by_kind(kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                // The one id that all references to a definition share is the key of its referrers.
                let known = |ty: &ResourceType, id: &str| {
                    self.catalogues[ty.position].referrers.get_key_value(id).map(|(id, _)| id.clone())
                };
                let cluster =
                    Arc::new(Cluster::read(Document { kind: ty.kind.clone(), ..document }, &registry, known)?);
                self.remove(&kind, &id, touched);
                self.link(&cluster);
                touched.extend(self.live_claims(&cluster.dns).map(|other| (kind.clone(), other.id().clone())));
                self.clusters.insert(id.clone(), cluster);
            }
            // Only clusters have tombstones; any other document that is not in force is not there.
            Some(_) if document.state == State::Retired => self.remove(&kind, &id, touched),
            Some(ty) => {
                let definition = Arc::new(Definition::read(document, ty)?);
                let known = self.catalogues[ty.position].definitions.insert(id.clone(), definition.clone());
                if known.is_none_or(|known| !known.is_ordered_as(&definition)) {
                    self.touch_referrers(ty, &id, touched);
                }
            }
            None => {
                self.strangers.insert((kind.clone(), id.clone()), Arc::new(document));
            }
        }
        touched.insert((kind, id));
        Ok(())
    }

    fn remove(&mut self, kind: &Kind, id: &Id, touched: &mut BTreeSet<(Kind, Id)>) {
        let registry = self.registry.clone();
        match registry.by_kind(kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                if let Some(cluster) = self.clusters.remove(id) {
                    self.unlink(&cluster);
                    touched.extend(self.live_claims(&cluster.dns).map(|other| (kind.clone(), other.id().clone())));
                }
            }
            Some(ty) => {
                self.catalogues[ty.position].definitions.remove(id);
                self.touch_referrers(ty, id, touched);
            }
            None => {
                self.strangers.remove(&(kind.clone(), id.clone()));
            }
        }
        touched.insert((kind.clone(), id.clone()));
    }

    /// Enters a cluster into the indexes.
    fn link(&mut self, cluster: &Cluster) {
        self.by_dns.entry(cluster.dns.clone()).or_default().insert(cluster.id().clone());
        if cluster.is_live() {
            for (position, catalogue) in self.catalogues.iter_mut().enumerate() {
                for reference in cluster.references(position) {
                    catalogue.referrers.entry(reference.id.clone()).or_default().insert(cluster.id().clone());
                }
            }
        }
    }

    /// Takes a cluster out of the indexes.
    fn unlink(&mut self, cluster: &Cluster) {
        drop_from(&mut self.by_dns, &cluster.dns, cluster.id());
        for (position, catalogue) in self.catalogues.iter_mut().enumerate() {
            for reference in cluster.references(position) {
                drop_from(&mut catalogue.referrers, &reference.id, cluster.id());
            }
        }
    }

    /// A definition came, went or moved in the order: whoever refers to it or patches it may have one problem more or
    /// less.
    fn touch_referrers(&self, ty: &ResourceType, id: &Id, touched: &mut BTreeSet<(Kind, Id)>) {
        let kind = Kind::from(ResourceType::CLUSTER);
        touched.extend(self.referrers(ty, id).map(|cluster| (kind.clone(), cluster.clone())));
        if ty.patchable {
            let patching = self.clusters().filter(|cluster| cluster.patches.contains_key(id.as_str()));
            touched.extend(patching.map(|cluster| (kind.clone(), cluster.id().clone())));
        }
    }

    /// Finds the problems of documents anew.
    fn examine(&mut self, mut touched: BTreeSet<(Kind, Id)>) {
        // A dependency that comes or goes can close or open a circle anywhere in its catalogue.
        for ty in self.registry.definitions().filter(|ty| ty.ordered_by.is_some()) {
            if touched.iter().any(|(kind, _)| *kind == ty.kind) {
                let all = self.catalogues[ty.position].definitions.keys();
                touched.extend(all.map(|id| (ty.kind.clone(), id.clone())));
            }
        }
        for key in &touched {
            let (kind, id) = key;
            let found = match self.registry.by_kind(kind.as_str()) {
                Some(ty) if ty.is_cluster() => self.clusters.get(id).map(|it| problems::of_cluster(self, it)),
                Some(ty) => self.definition(ty, id).map(|it| problems::of_definition(self, it)),
                None => self.strangers.get(key).map(|it| vec![problems::of_stranger(it)]),
            };
            match found {
                Some(found) if !found.is_empty() => self.problems.insert(key.clone(), found.into()),
                _ => self.problems.remove(key),
            };
        }
    }
}

/// Takes an id out of a set, and the set out of its map once it is empty.
fn drop_from<K: Clone + Eq + std::hash::Hash>(sets: &mut HashMap<K, OrdSet<Id>>, key: &K, id: &Id) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(id);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
