//! A whole fleet at once, on all cores: a start waits for this.
//!
//! Reading a cluster's text takes most of the time and needs nothing but the catalogue, so definitions come first. Clusters are
//! read side by side while the next ones come, and enter the indexes in the order in which they came.

use std::{
    collections::{BTreeMap, HashMap},
    iter,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use foldhash::fast::RandomState;
use imbl::OrdMap;
use model::{Document, Id, Point, Registry, ResourceType};

use super::{DnsIndex, Snapshot, SnapshotError, writing::Touched};
use crate::{
    Cluster, Polls,
    catalogue::Catalogue,
    cluster::NameIndex,
    cores::{cores, on_all_cores},
    problems::{Counts, check_cluster},
    slots::{Slot, Slots},
};

/// How many clusters a core reads at a time.
const CHUNK: usize = 64;

impl Snapshot {
    /// The fleet at a point of the change log, from all its documents. If one cannot be read, there is no snapshot.
    pub fn load(
        registry: Arc<Registry>,
        point: Point,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Self, SnapshotError> {
        let (clusters, others) = split(documents);
        let mut clusters = clusters.into_iter();
        let chunks = iter::from_fn(|| {
            let chunk: Vec<_> = clusters.by_ref().take(CHUNK).collect();
            Some(chunk).filter(|chunk| !chunk.is_empty())
        });
        Self::load_chunks(registry, iter::once(others).chain(chunks)).map(|fleet| fleet.at(point))
    }

    /// The same from documents that come in chunks, those of clusters last. The caller sets the point of the change log.
    pub fn load_chunks(
        registry: Arc<Registry>,
        chunks: impl IntoIterator<Item = Vec<Document>, IntoIter: Send>,
    ) -> Result<Self, SnapshotError> {
        let mut fleet = Self::empty(registry);
        let mut chunks = chunks.into_iter();
        let mut first = Vec::new();
        while first.is_empty()
            && let Some(chunk) = chunks.next()
        {
            let (clusters, others) = split(chunk);
            first = clusters;
            others.into_iter().try_for_each(|document| fleet.put(document, &mut Touched::Unrecorded))?;
        }
        fleet.add_clusters(iter::once(first).chain(chunks))?;
        fleet.examine_all();
        Ok(fleet)
    }

    /// The same, at a point of the change log.
    #[must_use]
    pub fn at(self, point: Point) -> Self {
        Self { point, ..self }
    }

    /// Reads clusters and adds them to the indexes.
    fn add_clusters(&mut self, chunks: impl Iterator<Item = Vec<Document>> + Send) -> Result<(), SnapshotError> {
        let defined = Defined(&self.catalogues);
        let chunks = Mutex::new(chunks.enumerate());
        let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let read = |document: Document| match is_cluster(&document)
            .then(|| Cluster::read(&document, &self.registry, &mut { defined }, Polls::new(self.catalogues.len())))
        {
            Some(Ok(cluster)) => Ok(cluster),
            _ => Err(document),
        };
        let mut index = Index::with_types(self.catalogues.len());
        thread::scope(|scope| {
            let (send, chunks) = mpsc::channel();
            for _ in 0..cores() {
                let send = send.clone();
                scope.spawn(move || {
                    while let Some((at, chunk)) = next() {
                        let chunk: Vec<_> = chunk.into_iter().map(read).collect();
                        // The receiver is there until all are read.
                        let _ = send.send((at, chunk));
                    }
                });
            }
            drop(send);
            let (mut early, mut turn) = (BTreeMap::new(), 0);
            for (at, chunk) in chunks {
                early.insert(at, chunk);
                while let Some(chunk) = early.remove(&turn) {
                    for cluster in chunk {
                        index.add(cluster);
                    }
                    turn += 1;
                }
            }
        });
        let Index { clusters, by_id, by_dns, holders, patching, renamed, waiting } = index;
        (self.clusters, self.by_id, self.by_dns) = (clusters, by_id, by_dns);
        for cluster in &renamed {
            self.note_released(None, Some(cluster));
        }
        for (catalogue, holders) in self.catalogues.iter_mut().zip(holders) {
            for (definition, slots) in (0..).zip(holders) {
                catalogue.hold_all(definition, slots.into_iter().collect());
            }
        }
        self.patching =
            patching.into_iter().map(|(name, slots)| (name, Arc::new(slots.into_iter().collect()))).collect();
        // Clusters that refer to what is not defined, or that cannot be read; and before them, other documents that came late.
        let (clusters, others) = split(waiting);
        others.into_iter().chain(clusters).try_for_each(|document| self.put(document, &mut Touched::Unrecorded))
    }

    /// Counts the problems of all documents.
    fn examine_all(&mut self) {
        let others = self.all_documents().filter(|document| !is_cluster(document));
        let keys = others.map(|document| (document.kind.clone(), document.id.clone())).collect();
        self.examine(Touched::These { keys, reordered: self.registry.definitions().map(|ty| ty.position).collect() });
        let counted = on_all_cores(self.clusters().cloned().collect(), |cluster| {
            let mut counts = Counts::default();
            check_cluster(self, &cluster, &mut counts);
            (cluster, counts)
        });
        for (cluster, counts) in counted.into_iter().filter(|(_, counts)| !counts.is_empty()) {
            self.problems.set((cluster.document.kind.clone(), cluster.id().clone()), counts);
        }
    }
}

/// Clusters, and all else.
fn split(documents: impl IntoIterator<Item = Document>) -> (Vec<Document>, Vec<Document>) {
    documents.into_iter().partition(is_cluster)
}

fn is_cluster(document: &Document) -> bool {
    document.kind.as_str() == ResourceType::CLUSTER
}

/// The indexes of clusters, while a fleet is loaded.
struct Index {
    clusters: Slots<Cluster>,
    by_id: OrdMap<Id, Slot>,
    by_dns: DnsIndex,
    /// The clusters that refer to each definition, by the type's position and the definition's slot.
    holders: Vec<Vec<Vec<Slot>>>,
    patching: HashMap<Arc<str>, Vec<Slot>, RandomState>,
    /// Clusters that have, or had, more than one name.
    renamed: Vec<Cluster>,
    /// What has to be read once everything else is there.
    waiting: Vec<Document>,
}

impl Index {
    fn with_types(types: usize) -> Self {
        Self {
            clusters: Slots::default(),
            by_id: OrdMap::new(),
            by_dns: DnsIndex::default(),
            holders: vec![Vec::new(); types],
            patching: HashMap::default(),
            renamed: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, cluster: Result<Cluster, Document>) {
        let cluster = match cluster {
            Ok(cluster) if !self.by_id.contains_key(cluster.id()) => cluster,
            Ok(cluster) => return self.waiting.push(cluster.document.clone()),
            Err(document) => return self.waiting.push(document),
        };
        if !cluster.has_one_name() {
            self.renamed.push(cluster.clone());
        }
        let slot = self.clusters.insert(cluster.clone());
        self.by_id.insert(cluster.id().clone(), slot);
        for dns in cluster.dns_names() {
            self.by_dns.claim(dns, cluster.id(), Some(&cluster));
        }
        for (position, holders) in self.holders.iter_mut().enumerate() {
            for definition in cluster.slots(position) {
                let at = definition as usize;
                holders.resize_with(holders.len().max(at + 1), Vec::new);
                // Twice in one list is once.
                if holders[at].last() != Some(&slot) {
                    holders[at].push(slot);
                }
            }
        }
        for patches in cluster.patches() {
            match self.patching.get_mut(&patches.name) {
                Some(slots) => slots.push(slot),
                None => drop(self.patching.insert(patches.name.clone(), vec![slot])),
            }
        }
    }
}

/// The definitions that there are. An id that is not defined has no slot here: while clusters change, it could lose it.
#[derive(Clone, Copy)]
pub(super) struct Defined<'a>(pub(super) &'a [Catalogue]);

impl NameIndex for Defined<'_> {
    fn slot(&mut self, ty: &ResourceType, id: &str) -> Result<Slot, String> {
        let catalogue = &self.0[ty.position];
        let slot = catalogue.find_slot(id).filter(|slot| catalogue.definition_at(*slot).is_some());
        // The cluster is read again by itself.
        slot.ok_or_else(|| "it is not defined".to_owned())
    }

    fn shared_name(&mut self, name: &str) -> Arc<str> {
        let found = self.0.iter().find_map(|catalogue| catalogue.find(name));
        found.map_or_else(|| name.into(), |entry| entry.id.shared())
    }
}
