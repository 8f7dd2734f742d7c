//! The server's hold on the log: the store, once the follower has opened it, and how far the picture has come.

use std::sync::{Arc, OnceLock};

use fleet::Snapshot;
use model::{Change, Revision};
use store::Store;
use tokio::sync::{Mutex, Notify, watch};

use crate::{failure::Failure, held::Held, queue::Queue};

/// The log, as handlers see it.
pub struct Log {
    store: OnceLock<Arc<dyn Store>>,
    published: watch::Sender<Revision>,
    /// What is served, once the log is followed. Whoever has it moves the picture: the follower, or who has just brought changes
    /// of this process into the log.
    held: OnceLock<Arc<Mutex<Held>>>,
    /// There is something to see in the log.
    news: Notify,
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
            held: OnceLock::new(),
            news: Notify::new(),
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

    /// Where it is told how far the picture has come.
    pub(crate) fn published(&self) -> watch::Sender<Revision> {
        self.published.clone()
    }

    /// From now on the picture may be moved.
    pub(crate) fn follows(&self, held: Arc<Mutex<Held>>) {
        // The follower begins once.
        let _ = self.held.set(held);
    }

    /// Changes of this process are in the log, and this is the picture with them. If it is not the next one, or cannot be
    /// kept, the follower sees to it.
    pub(crate) async fn made(&self, changes: &[Change], next: Arc<Snapshot>) {
        let taken = match self.held.get() {
            Some(held) => held.lock().await.take(next, changes),
            None => false,
        };
        if !taken {
            self.look();
        }
    }

    /// Lets the follower look at the log.
    pub(crate) fn look(&self) {
        self.news.notify_one();
    }

    /// Waits until there is something to see in the log.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
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
    pub async fn closed(&self) {
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
