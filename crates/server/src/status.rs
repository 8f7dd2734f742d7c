//! What others may know of the follower: how old the picture is, and how it gets on with the store.

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
    /// Not opened yet.
    Starting,
    /// At the head of the log.
    Following,
    /// The store cannot be read; the picture ages.
    Unavailable,
    /// The log, which ends here, does not continue what is served; the picture is kept.
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

/// What others may know of the follower.
#[derive(Debug)]
pub struct Status {
    /// Milliseconds of uptime at which the picture was last known to be at the head; below zero if that was before the
    /// start.
    synced: AtomicI64,
    store: ArcSwap<StoreStatus>,
    /// How often the follower has compared what is served with the head of the change log, whatever it found.
    refreshes: AtomicU64,
}

impl Default for Status {
    fn default() -> Self {
        let store = ArcSwap::from_pointee(StoreStatus::Starting);
        Self { synced: AtomicI64::new(0), store, refreshes: AtomicU64::new(0) }
    }
}

impl Status {
    /// How long ago the picture was known to be at the head of the log.
    pub(crate) fn age(&self, uptime: Duration) -> Duration {
        let age = milliseconds(uptime).saturating_sub(self.synced.load(Ordering::Relaxed));
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    pub(crate) fn store(&self) -> StoreStatus {
        **self.store.load()
    }

    /// The picture is at the head; whether this is news.
    pub(crate) fn in_step(&self, uptime: Duration) -> bool {
        self.was_in_step(uptime, Duration::ZERO);
        self.turn(StoreStatus::Following)
    }

    /// The picture was at the head so long ago.
    pub(crate) fn was_in_step(&self, uptime: Duration, ago: Duration) {
        self.synced.store(milliseconds(uptime).saturating_sub(milliseconds(ago)), Ordering::Relaxed);
    }

    pub(crate) fn refreshes(&self) -> u64 {
        self.refreshes.load(Ordering::Relaxed)
    }

    /// A refresh has ended, well or not.
    pub(crate) fn refreshed(&self) {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this is news.
    pub(crate) fn turn(&self, now: StoreStatus) -> bool {
        self.store.swap(Arc::new(now)).name() != now.name()
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
