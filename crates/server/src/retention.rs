//! Retention: the log forgets changes that are older than a setting says. The present stays what it is.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use model::Revision;
use store::{EntryQuery, StoreError};

use crate::{Clock, Log};

/// How often the log is looked through.
const PAUSE: Duration = Duration::from_mins(10);

/// Forgets what is older than `keep`, for ever.
pub async fn retain(log: Arc<Log>, clock: Arc<dyn Clock>, keep: SignedDuration) {
    // There is nothing to forget before the first change.
    log.reached(Revision::ZERO.next()).await;
    loop {
        if let Err(error) = forget(&log, &*clock, keep).await {
            tracing::warn!("old changes were not forgotten: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn forget(log: &Log, clock: &dyn Clock, keep: SignedDuration) -> Result<(), StoreError> {
    let (Some(store), Ok(until)) = (log.opened_store(), clock.now().checked_sub(keep)) else { return Ok(()) };
    let oldest = EntryQuery { until: Some(until), limit: 1, ..EntryQuery::default() };
    if let Some(entry) = store.entries(&oldest).await?.first()
        && let Some(horizon) = store.prune(entry.change.revision).await?
    {
        tracing::info!(revision = horizon.0, "changes up to this revision are forgotten");
    }
    Ok(())
}
