//! The server's hold on the log: the store, once the follower has opened it, and how far the picture has come.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex as PlainMutex, OnceLock, PoisonError},
};

use fleet::Snapshot;
use model::{Change, Digest, Point, Revision};
use store::Store;
use tokio::sync::watch;

use crate::{failure::Failure, queue::Queue};

/// Changes that this process is about to make, and the picture with them.
pub(crate) struct Prepared {
    pub(crate) changes: Arc<[Change]>,
    pub(crate) fleet: Arc<Snapshot>,
    /// Whether the store is known to have them.
    made: bool,
}

impl Prepared {
    /// Whether they end with the change of this digest.
    fn ends_with(&self, digest: &Digest) -> bool {
        self.changes.last().is_some_and(|last| last.digest == *digest)
    }
}

/// The log, as handlers see it.
pub struct Log {
    store: OnceLock<Arc<dyn Store>>,
    published: watch::Sender<Revision>,
    /// What this process appends, so that the follower need neither ask the store for it nor think it through again.
    prepared: PlainMutex<VecDeque<Prepared>>,
    /// Turns true when the server stops: what would go on for ever ends then.
    closed: watch::Sender<bool>,
    /// Writers of this process come one after another, so that only writers of other processes can be in their way.
    pub(crate) queue: Queue,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            store: OnceLock::new(),
            published: watch::Sender::new(Revision::ZERO),
            prepared: PlainMutex::default(),
            closed: watch::Sender::new(false),
            queue: Queue::default(),
        }
    }
}

impl Log {
    /// The follower has opened the store.
    pub(crate) fn opened(&self, store: Arc<dyn Store>) {
        // The follower opens it once.
        let _ = self.store.set(store);
    }

    /// The follower has published a picture.
    pub(crate) fn published(&self, revision: Revision) {
        self.published.send_replace(revision);
    }

    /// Changes are on their way to the store, after all others that are.
    pub(crate) fn prepare(&self, changes: Arc<[Change]>, fleet: Arc<Snapshot>) {
        self.prepared().push_back(Prepared { changes, fleet, made: false });
    }

    /// The store has taken the changes that end with this digest.
    pub(crate) fn made(&self, digest: &Digest) {
        if let Some(prepared) = self.prepared().iter_mut().find(|it| it.ends_with(digest)) {
            prepared.made = true;
        }
    }

    /// What is on its way may never arrive. If it has, the store says so.
    pub(crate) fn lost(&self) {
        self.prepared().clear();
    }

    /// The digest of the last change that is prepared for a point, and whether the store is known to have it. If it is not,
    /// and the log is there, the changes were made.
    pub(crate) fn prepared_for(&self, point: &Point) -> Option<(Digest, bool)> {
        let mut prepared = self.prepared();
        // What was seen by another way is not kept.
        while prepared.pop_front_if(|it| it.fleet.revision() <= point.revision).is_some() {}
        let prepared = prepared.front()?;
        let follows = prepared.changes.first().is_some_and(|first| first.parent == point.digest);
        follows.then(|| (prepared.fleet.point().digest, prepared.made))
    }

    /// Takes what was prepared first, if it ends with the change of this digest.
    pub(crate) fn take_prepared(&self, digest: &Digest) -> Option<Prepared> {
        self.prepared().pop_front_if(|it| it.ends_with(digest))
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, VecDeque<Prepared>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, if it was opened.
    pub(crate) fn opened_store(&self) -> Option<&Arc<dyn Store>> {
        self.store.get()
    }

    /// The store, or the failure to send while it is not opened.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, Failure> {
        self.opened_store().ok_or_else(Failure::not_ready)
    }

    /// The server stops.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits until the server stops.
    pub(crate) async fn closed(&self) {
        // The sender is part of this value, so it is not gone.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Waits until the picture has come to a revision.
    pub(crate) async fn reached(&self, revision: Revision) {
        // The sender is part of this value, so it is not gone.
        let _ = self.published.subscribe().wait_for(|published| *published >= revision).await;
    }

    /// Follows the revisions of the picture.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.published.subscribe()
    }
}
