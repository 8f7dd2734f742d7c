//! Retention: the log forgets changes that are older than a setting says. The present stays what it is.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use model::Revision;
use store::{Ends, StoreError};

use crate::{Clock, Log, Status, StoreStatus};

/// How often the log is looked through.
const PAUSE: Duration = Duration::from_mins(10);

/// Forgets what is older than `keep`, for ever.
pub async fn retain(log: Arc<Log>, status: Arc<Status>, clock: Arc<dyn Clock>, keep: SignedDuration) {
    // There is nothing to forget before the first change.
    log.reached(Revision::ZERO.next()).await;
    loop {
        // Of a log that is not the one that is served, nothing is forgotten.
        if !matches!(status.store(), StoreStatus::Diverged(_))
            && let Err(error) = forget(&log, &*clock, keep).await
        {
            tracing::warn!("old changes were not forgotten: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many changes are forgotten at once: writers wait for it.
const STEP: u64 = 1_000;

/// Forgets the changes before the first one that is young enough.
async fn forget(log: &Log, clock: &dyn Clock, keep: SignedDuration) -> Result<(), StoreError> {
    let (Some(store), Ok(since)) = (log.opened_store(), clock.now().checked_sub(keep)) else { return Ok(()) };
    let Ends { horizon, head } = store.ends().await?;
    let first = store.first_since(since).await?.unwrap_or(head.revision);
    let mut at = horizon.revision.0;
    while at + 1 < first.0 {
        at = (at + STEP).min(first.0 - 1);
        if let Some(horizon) = store.prune(Revision(at)).await? {
            tracing::info!(revision = horizon.0, "changes up to this revision are forgotten");
        }
    }
    Ok(())
}
