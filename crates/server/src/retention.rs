//! Retention: the log forgets changes that are older than a setting says. The present stays what it is.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use model::Revision;
use store::{Ends, StoreError};

use crate::{Clock, Log, Status, StoreStatus};

/// How often the log is looked through.
const PAUSE: Duration = Duration::from_mins(10);

const MOMENT: Duration = Duration::from_secs(1);

/// Forgets what is older than `keep`, for ever.
pub async fn retain(log: Arc<Log>, status: Arc<Status>, clock: Arc<dyn Clock>, keep: SignedDuration) {
    // There is nothing to forget before the first change.
    log.reached(Revision::ZERO.next()).await;
    loop {
        while status.store() != StoreStatus::Following {
            tokio::time::sleep(MOMENT).await;
        }
        if let Err(error) = forget(&log, &status, &*clock, keep).await {
            tracing::warn!("old changes were not forgotten: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many changes are forgotten at once: writers wait for it.
const STEP: u64 = 1_000;

/// Forgets the changes before the first one that is young enough.
async fn forget(log: &Log, status: &Status, clock: &dyn Clock, keep: SignedDuration) -> Result<(), StoreError> {
    let (Some(store), Ok(since)) = (log.opened_store(), clock.now().checked_sub(keep)) else { return Ok(()) };
    let Ends { horizon, head } = store.ends().await?;
    let first = store.first_since(since).await?.unwrap_or(head.revision);
    let (mut at, mut step) = (horizon.revision.0, STEP);
    // Of a log that is not the one that is served, nothing is forgotten.
    while at + 1 < first.0 && status.store() == StoreStatus::Following {
        let next = (at + step).min(first.0 - 1);
        match store.prune(Revision(next)).await {
            Ok(_) => at = next,
            // Too much at once, perhaps.
            Err(error) if step > 1 && error.may_pass() => step /= 10,
            Err(error) => return Err(error),
        }
    }
    if at > horizon.revision.0 {
        tracing::info!(revision = at, "changes up to this revision are forgotten");
    }
    Ok(())
}
