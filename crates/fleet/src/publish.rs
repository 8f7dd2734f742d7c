//! One writer and many readers, as the types enforce.

use std::{ops::Deref, sync::Arc};

use arc_swap::ArcSwapOption;

use crate::Snapshot;

/// A fleet of which nothing is known yet: the end that publishes snapshots and the end that reads the newest.
#[must_use]
pub fn fleet() -> (Writer, Reader) {
    let newest = Arc::new(ArcSwapOption::empty());
    (Writer { newest: newest.clone() }, Reader { newest })
}

/// Publishes snapshots. There is one, so it is not `Clone`.
#[derive(Debug)]
pub struct Writer {
    newest: Arc<ArcSwapOption<Snapshot>>,
}

impl Writer {
    /// Lets all readers see a snapshot. Which one may follow on which is for the owner to know.
    pub fn publish(&mut self, snapshot: Arc<Snapshot>) {
        self.newest.store(Some(snapshot));
    }
}

/// Sees the newest snapshot, without a lock.
#[derive(Clone, Debug)]
pub struct Reader {
    newest: Arc<ArcSwapOption<Snapshot>>,
}

impl Reader {
    /// The newest snapshot, for as long as it takes to read it; none before the first was published.
    #[must_use]
    pub fn newest(&self) -> impl Deref<Target = Option<Arc<Snapshot>>> {
        self.newest.load()
    }

    /// The newest snapshot, to keep; none before the first was published.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.newest.load_full()
    }
}
