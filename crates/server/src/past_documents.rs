//! A cache of documents as they were at a past revision, read from the store.
//!
//! Many clients ask for the same revision at about the same time, such as all that compare with the last good one. The first
//! request reads the store, the others wait for it and share the result. The cache is limited in number, size and time, and
//! never has a whole fleet with its indexes: a list needs the documents of one kind, and the inputs of one cluster need the
//! definitions and that cluster.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::{Epoch, Kind, Point, ResourceType, Revision, StoreId};
use prometheus::IntCounterVec;
use store::{KindFilter, Store, StoreError, StoredFleet};
use tokio::sync::OnceCell;

/// How many sets of documents are cached, and how many bytes of bodies they have in total.
const MAX_SETS: usize = 8;
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// How long a set is cached. Retention may prune its revision meanwhile.
const MAX_AGE: Duration = Duration::from_mins(1);

pub(crate) struct PastDocuments {
    /// The most recently requested set is the first.
    cached: Mutex<VecDeque<CachedSet>>,
    /// Counts the sets that were read from the store.
    loads: IntCounterVec,
}

struct CachedSet {
    key: Key,
    since: Duration,
    documents: Arc<OnceCell<Arc<StoredFleet>>>,
}

/// The key of a set. In one epoch of one store, a revision is one change.
#[derive(Clone, PartialEq)]
struct Key {
    store: StoreId,
    epoch: Epoch,
    revision: Revision,
    kinds: KindFilter,
}

impl PastDocuments {
    pub(crate) fn new(loads: IntCounterVec) -> Self {
        Self { cached: Mutex::default(), loads }
    }

    /// The documents of a type at a revision of the change log that led to a point.
    pub(crate) async fn of_type(
        &self,
        store: &dyn Store,
        now: (&Point, Duration),
        revision: Revision,
        ty: &ResourceType,
    ) -> Result<Arc<StoredFleet>, StoreError> {
        self.load(store, now, revision, KindFilter::Only(ty.kind.clone()), ty.kind.as_str()).await
    }

    /// The same for all documents but clusters.
    pub(crate) async fn definitions(
        &self,
        store: &dyn Store,
        now: (&Point, Duration),
        revision: Revision,
    ) -> Result<Arc<StoredFleet>, StoreError> {
        self.load(store, now, revision, KindFilter::Except(Kind::from(ResourceType::CLUSTER)), "definitions").await
    }

    async fn load(
        &self,
        store: &dyn Store,
        (point, uptime): (&Point, Duration),
        revision: Revision,
        kinds: KindFilter,
        label: &str,
    ) -> Result<Arc<StoredFleet>, StoreError> {
        let key = Key { store: point.store, epoch: point.epoch, revision, kinds: kinds.clone() };
        let documents = self.slot(key, uptime);
        let load = async || {
            let stored = store.documents_at(revision, kinds).await?;
            self.loads.with_label_values(&[label]).inc();
            Ok::<_, StoreError>(Arc::new(stored))
        };
        let loaded = documents.get_or_try_init(load).await?.clone();
        self.evict();
        Ok(loaded)
    }

    /// The cell of a set, which is filled or will be.
    fn slot(&self, key: Key, uptime: Duration) -> Arc<OnceCell<Arc<StoredFleet>>> {
        let mut cached = self.cached();
        cached.retain(|it| uptime.saturating_sub(it.since) < MAX_AGE);
        let found = cached.iter().position(|it| it.key == key).and_then(|at| cached.remove(at));
        let found = found.unwrap_or_else(|| CachedSet { key, since: uptime, documents: Arc::default() });
        let documents = found.documents.clone();
        cached.push_front(found);
        documents
    }

    /// Removes the least recently requested sets until the others are within the limits.
    fn evict(&self) {
        let (mut count, mut bytes) = (0, 0);
        self.cached().retain(|it| {
            let size = |stored: &Arc<StoredFleet>| stored.documents.iter().map(|it| it.body.stored_len()).sum();
            count += 1;
            bytes += it.documents.get().map_or(0, size);
            count <= MAX_SETS && bytes <= MAX_BYTES
        });
    }

    fn cached(&self) -> MutexGuard<'_, VecDeque<CachedSet>> {
        // Nothing panics while it is locked.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::{Body, Document, Id, State};
    use prometheus::Opts;

    use super::*;

    /// Caches documents of a revision with so many bytes in total.
    fn cache(past: &PastDocuments, revision: u64, bytes: usize) {
        let key =
            Key { store: StoreId::default(), epoch: Epoch(0), revision: Revision(revision), kinds: KindFilter::All };
        let document = Document {
            kind: Kind::from("namespace"),
            id: Id::parse("a").unwrap(),
            revision: Revision(1),
            state: State::Live,
            body: Body::plain(&"x".repeat(bytes)),
        };
        let stored = StoredFleet { documents: vec![document], point: Point::default() };
        past.slot(key, Duration::ZERO).set(Arc::new(stored)).unwrap();
        past.evict();
    }

    fn revisions(past: &PastDocuments) -> Vec<u64> {
        past.cached().iter().map(|it| it.key.revision.0).collect()
    }

    #[test]
    fn the_least_recently_requested_sets_are_removed() {
        let past = PastDocuments::new(IntCounterVec::new(Opts::new("loads", "loads"), &["documents"]).unwrap());
        (1..=12).for_each(|revision| cache(&past, revision, 100));
        assert_eq!(revisions(&past), (5..=12).rev().collect::<Vec<_>>(), "the limit of sets");
        cache(&past, 13, MAX_BYTES - 300);
        assert_eq!(revisions(&past), [13, 12, 11, 10], "the limit of bytes");
        let oldest = past.cached()[3].key.clone();
        past.slot(oldest, MAX_AGE);
        assert_eq!(past.cached().len(), 1, "the limit of time");
    }
}
