//! The server's hold on the log: the store, once the follower has opened it, and how far the picture has come.

use std::sync::{Arc, Mutex as PlainMutex, OnceLock, PoisonError};

use fleet::Snapshot;
use model::{Change, Digest, Point, Revision};
use store::Store;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::failure::Failure;

/// A change that this process is about to make, and the picture with it.
pub(crate) struct Prepared {
    pub(crate) change: Change,
    pub(crate) fleet: Snapshot,
    /// Whether the store is known to have it.
    made: bool,
}

/// The log, as handlers see it.
pub struct Log {
    store: OnceLock<Arc<dyn Store>>,
    published: watch::Sender<Revision>,
    /// What this process appends, so that the follower need neither ask the store for it nor think it through again.
    prepared: PlainMutex<Option<Prepared>>,
    /// Turns true when the server stops: what would go on for ever ends then.
    closed: watch::Sender<bool>,
    /// Writers of this process come one after another, so that only writers of other processes can be in their way.
    turn: Mutex<()>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            store: OnceLock::new(),
            published: watch::Sender::new(Revision::ZERO),
            prepared: PlainMutex::default(),
            closed: watch::Sender::new(false),
            turn: Mutex::new(()),
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

    /// A change is on its way to the store.
    pub(crate) fn prepare(&self, change: Change, fleet: Snapshot) {
        *self.prepared() = Some(Prepared { change, fleet, made: false });
    }

    /// The store has taken the change of this digest.
    pub(crate) fn made(&self, digest: &Digest) {
        if let Some(prepared) = self.prepared().as_mut().filter(|it| it.change.digest == *digest) {
            prepared.made = true;
        }
    }

    /// The digest of the change that is prepared for a point, and whether the store is known to have it. If it is not, and
    /// the log is there, the change was made.
    pub(crate) fn prepared_for(&self, point: &Point) -> Option<(Digest, bool)> {
        let mut prepared = self.prepared();
        // What was seen by another way, or never was, is not kept.
        drop(prepared.take_if(|it| it.change.revision <= point.revision));
        prepared.as_ref().filter(|it| it.change.parent == point.digest).map(|it| (it.change.digest, it.made))
    }

    /// Takes what was prepared, if it is the change of this digest. It is kept for nobody else.
    pub(crate) fn take_prepared(&self, digest: &Digest) -> Option<Prepared> {
        self.prepared().take().filter(|it| it.change.digest == *digest)
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, Option<Prepared>> {
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

    /// Waits for one's turn to write.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
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
