//! The server's hold on the log: the store, once the follower has opened it, and how far the picture has come.

use std::sync::{Arc, Mutex as PlainMutex, OnceLock, PoisonError};

use fleet::Snapshot;
use model::{Change, Point, Revision};
use store::Store;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::failure::Failure;

/// A change that this process has made, and the picture with it.
pub(crate) struct Appended {
    pub(crate) change: Change,
    pub(crate) fleet: Snapshot,
}

/// The log, as handlers see it.
pub struct Log {
    store: OnceLock<Arc<dyn Store>>,
    published: watch::Sender<Revision>,
    /// What this process has appended and the follower has not seen yet, so that it need not ask the store for it.
    appended: PlainMutex<Option<Appended>>,
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
            appended: PlainMutex::default(),
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

    /// The store has taken a change.
    pub(crate) fn appended(&self, appended: Appended) {
        *self.appended.lock().unwrap_or_else(PoisonError::into_inner) = Some(appended);
    }

    /// The change that this process has appended to a point, if the follower comes there in time.
    pub(crate) fn take_appended(&self, point: &Point) -> Option<Appended> {
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        // What the follower has seen by another way is not kept.
        drop(appended.take_if(|appended| appended.change.revision <= point.revision));
        appended.take_if(|appended| appended.change.parent == point.digest)
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
