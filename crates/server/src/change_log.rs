//! The change log as the rest of the server sees it: the store, once it is open, and how far the served snapshot has come.

use std::sync::{Arc, OnceLock};

use fleet::Snapshot;
use model::{Change, Revision};
use store::Store;
use tokio::sync::{Mutex, Notify, watch};

use crate::{failure::Failure, group_commit::GroupCommit, serving::Serving};

/// The change log, shared by handlers and the follower.
pub struct ChangeLog {
    store: OnceLock<Arc<dyn Store>>,
    published: watch::Sender<Revision>,
    /// The serving state, once the change log is followed. Two move it: the follower, and a writer whose changes were appended.
    serving: OnceLock<Arc<Mutex<Serving>>>,
    refresh: Notify,
    /// Turns true when the server stops.
    closed: watch::Sender<bool>,
    /// Lets one writer of this process prepare at a time, so that only writers of other processes can conflict with it.
    pub(crate) group_commit: GroupCommit,
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self {
            store: OnceLock::new(),
            published: watch::Sender::new(Revision::ZERO),
            serving: OnceLock::new(),
            refresh: Notify::new(),
            closed: watch::Sender::new(false),
            group_commit: GroupCommit::default(),
        }
    }
}

impl ChangeLog {
    /// The follower has opened the store.
    pub(crate) fn set_store(&self, store: Arc<dyn Store>) {
        // The follower opens it once.
        let _ = self.store.set(store);
    }

    /// Where the revision of the served snapshot is published.
    pub(crate) fn published(&self) -> watch::Sender<Revision> {
        self.published.clone()
    }

    /// From now on, writers may move the serving state.
    pub(crate) fn set_serving(&self, serving: Arc<Mutex<Serving>>) {
        // The follower begins once.
        let _ = self.serving.set(serving);
    }

    /// Serves the snapshot after changes of this process that were just appended. If they do not continue what is served, or the
    /// snapshot cannot be saved, the follower reads them from the store.
    pub(crate) async fn publish_own(&self, changes: &[Change], next: Arc<Snapshot>) {
        let is_published = match self.serving.get() {
            Some(serving) => serving.lock().await.follow_own(next, changes),
            None => false,
        };
        if !is_published {
            self.request_refresh();
        }
    }

    /// Lets the follower compare the served snapshot with the head of the change log.
    pub(crate) fn request_refresh(&self) {
        self.refresh.notify_one();
    }

    /// Waits until a refresh is requested.
    pub(crate) async fn refresh_requested(&self) {
        self.refresh.notified().await;
    }

    /// The store, if it is open.
    pub(crate) fn opened_store(&self) -> Option<&Arc<dyn Store>> {
        self.store.get()
    }

    /// The store, or the failure to send until it is open.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, Failure> {
        self.opened_store().ok_or_else(Failure::not_ready)
    }

    /// The server stops.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits until the server stops.
    pub async fn closed(&self) {
        // The sender is part of this value, so the channel is open.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Waits until the snapshot of a revision, or a later one, is served.
    pub(crate) async fn reached(&self, revision: Revision) {
        // The sender is part of this value, so the channel is open.
        let _ = self.published.subscribe().wait_for(|published| *published >= revision).await;
    }

    /// Watches the revision of the served snapshot.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.published.subscribe()
    }
}
