//! Documents as they were at a revision, read from the store and kept for a moment.
//!
//! Many clients ask for the same revision at about the same time, such as all that compare with the last good one. The first of
//! them reads the store, the others wait for it and share what it read. What is kept is bounded in number, size and time, and
//! is never a whole fleet with its indexes: a list needs the documents of one kind, and the inputs of one cluster need the
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

/// How many sets of documents are kept, and how many bytes of bodies in all of them.
const MOST: usize = 8;
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// For how long one is kept. Retention may forget the revision meanwhile.
const GOOD_FOR: Duration = Duration::from_mins(1);

pub(crate) struct PastDocuments {
    /// The last one that was asked for comes first.
    kept: Mutex<VecDeque<Kept>>,
    /// Counts what was read from the store.
    loads: IntCounterVec,
}

struct Kept {
    key: Key,
    since: Duration,
    documents: Arc<OnceCell<Arc<StoredFleet>>>,
}

/// Which documents. In one epoch of one store, a revision is one change.
#[derive(Clone, PartialEq)]
struct Key {
    store: StoreId,
    epoch: Epoch,
    revision: Revision,
    kinds: KindFilter,
}

impl PastDocuments {
    pub(crate) fn new(loads: IntCounterVec) -> Self {
        Self { kept: Mutex::default(), loads }
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

    /// The same of all documents but clusters.
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
            let picture = store.documents_at(revision, kinds).await?;
            self.loads.with_label_values(&[label]).inc();
            Ok::<_, StoreError>(Arc::new(picture))
        };
        let loaded = documents.get_or_try_init(load).await?.clone();
        self.evict();
        Ok(loaded)
    }

    /// Where the documents are, or are about to be.
    fn slot(&self, key: Key, uptime: Duration) -> Arc<OnceCell<Arc<StoredFleet>>> {
        let mut kept = self.kept();
        kept.retain(|it| uptime.saturating_sub(it.since) < GOOD_FOR);
        let found = kept.iter().position(|it| it.key == key).and_then(|at| kept.remove(at));
        let found = found.unwrap_or_else(|| Kept { key, since: uptime, documents: Arc::default() });
        let documents = found.documents.clone();
        kept.push_front(found);
        documents
    }

    /// Lets go of those that were not asked for for longest, until the others are within bounds.
    fn evict(&self) {
        let (mut count, mut bytes) = (0, 0);
        self.kept().retain(|it| {
            let of = |picture: &Arc<StoredFleet>| picture.documents.iter().map(|it| it.body.stored_len()).sum();
            count += 1;
            bytes += it.documents.get().map_or(0, of);
            count <= MOST && bytes <= MOST_BYTES
        });
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::{Body, Document, Id, State};
    use prometheus::Opts;

    use super::*;

    /// Keeps documents of a revision with so many bytes in all.
    fn keep(past: &PastDocuments, revision: u64, bytes: usize) {
        let key =
            Key { store: StoreId::default(), epoch: Epoch(0), revision: Revision(revision), kinds: KindFilter::All };
        let document = Document {
            kind: Kind::from("namespace"),
            id: Id::parse("a").unwrap(),
            revision: Revision(1),
            state: State::Live,
            body: Body::plain(&"x".repeat(bytes)),
        };
        let picture = StoredFleet { documents: vec![document], point: Point::default() };
        past.slot(key, Duration::ZERO).set(Arc::new(picture)).unwrap();
        past.evict();
    }

    fn revisions(past: &PastDocuments) -> Vec<u64> {
        past.kept().iter().map(|it| it.key.revision.0).collect()
    }

    #[test]
    fn what_was_not_asked_for_for_longest_is_let_go() {
        let past = PastDocuments::new(IntCounterVec::new(Opts::new("loads", "loads"), &["documents"]).unwrap());
        (1..=12).for_each(|revision| keep(&past, revision, 100));
        assert_eq!(revisions(&past), (5..=12).rev().collect::<Vec<_>>(), "so many and no more");
        keep(&past, 13, MOST_BYTES - 300);
        assert_eq!(revisions(&past), [13, 12, 11, 10], "so large and no larger");
        let oldest = past.kept()[3].key.clone();
        past.slot(oldest, GOOD_FOR);
        assert_eq!(past.kept().len(), 1, "each for a minute");
    }
}
