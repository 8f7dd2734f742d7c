//! One writer, many readers, and the types say so.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use model::Revision;

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

/// A snapshot that is older than the one before it.
#[derive(Debug, thiserror::Error)]
#[error("the picture at revision {published} is newer than revision {offered}")]
pub struct BackInTime {
    /// What readers see.
    pub published: Revision,
    /// What was offered instead.
    pub offered: Revision,
}

impl Writer {
    /// Lets all readers see a snapshot, unless they have seen a newer one: an older picture is a shorter answer.
    pub fn publish(&mut self, snapshot: Arc<Snapshot>) -> Result<(), BackInTime> {
        if let Some(published) = self.newest.load().as_ref()
            && published.revision() > snapshot.revision()
        {
            return Err(BackInTime { published: published.revision(), offered: snapshot.revision() });
        }
        self.newest.store(Some(snapshot));
        Ok(())
    }
}

/// Sees the newest snapshot, without a lock.
#[derive(Clone, Debug)]
pub struct Reader {
    newest: Arc<ArcSwapOption<Snapshot>>,
}

impl Reader {
    /// The newest snapshot; none before the first was published.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.newest.load_full()
    }
}
