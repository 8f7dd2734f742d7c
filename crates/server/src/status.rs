//! What the rest of the server sees of the follower: how old the snapshot is, and how the store is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use model::Point;

/// How the follower gets on with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreStatus {
    /// The store has not been read yet.
    Starting,
    /// The served snapshot is at the head of the change log.
    Following,
    /// The store cannot be read; the snapshot ages.
    Unavailable,
    /// The change log, which ends here, does not continue the snapshot.
    Diverged(Point),
}

impl StoreStatus {
    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Following => "following",
            Self::Unavailable => "unavailable",
            Self::Diverged(_) => "diverged",
        }
    }
}

/// The status that the follower publishes.
#[derive(Debug)]
pub struct Status {
    /// Milliseconds of uptime at which the snapshot was last known to be at the head; below zero if that was before the
    /// start.
    at_head: AtomicI64,
    store: ArcSwap<StoreStatus>,
    /// How often the follower has compared the snapshot with the head of the change log, with whatever result.
    refreshes: AtomicU64,
}

impl Default for Status {
    fn default() -> Self {
        let store = ArcSwap::from_pointee(StoreStatus::Starting);
        Self { at_head: AtomicI64::new(0), store, refreshes: AtomicU64::new(0) }
    }
}

impl Status {
    /// How long ago the snapshot was known to be at the head of the change log.
    pub(crate) fn age(&self, uptime: Duration) -> Duration {
        let age = milliseconds(uptime).saturating_sub(self.at_head.load(Ordering::Relaxed));
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    pub(crate) fn store(&self) -> StoreStatus {
        **self.store.load()
    }

    /// The snapshot was at the head of the change log so long ago.
    pub(crate) fn note_at_head(&self, uptime: Duration, ago: Duration) {
        self.at_head.store(milliseconds(uptime).saturating_sub(milliseconds(ago)), Ordering::Relaxed);
    }

    pub(crate) fn refreshes(&self) -> u64 {
        self.refreshes.load(Ordering::Relaxed)
    }

    /// A refresh has ended, with whatever result.
    pub(crate) fn count_refresh(&self) {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes the status of the store. Returns whether it has another name than before.
    pub(crate) fn set(&self, store: StoreStatus) -> bool {
        self.store.swap(Arc::new(store)).name() != store.name()
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
