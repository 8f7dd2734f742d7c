//! Retention: changes that are older than `HISTORY_RETENTION` are pruned from the change log. The current documents stay.
//!
//! Pruned changes cannot be restored, and a clock can jump. So the age of a change is measured against the newest change from
//! before this server's start, plus the uptime of the server, which no change of the wall clock moves; or against the wall clock,
//! if that is earlier. Changes that this server wrote do not count: their times are from the same clock. So a clock that jumps
//! ahead prunes nothing by itself: a change would have to be written with it, and a server started afterwards. The price: a
//! change log without a change for a long time keeps its history for that much longer, until a server starts after the next
//! change.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use model::Revision;
use store::{ChangeLogQuery, LogBounds, Store, StoreError};

use crate::{ChangeLog, Clock, Status, StoreStatus};

/// How often old changes are pruned.
const PAUSE: Duration = Duration::from_mins(10);

/// How often the status of the store is checked while the change log is not followed.
const STATUS_PAUSE: Duration = Duration::from_secs(1);

/// Prunes changes that are older than `keep`, in a loop that never ends.
pub async fn retain(log: Arc<ChangeLog>, status: Arc<Status>, clock: Arc<dyn Clock>, keep: SignedDuration) {
    // There is nothing to prune before the first change.
    log.reached(Revision::ZERO.next()).await;
    let started = clock.now().checked_sub(clock.uptime()).unwrap_or(Timestamp::MIN);
    let mut newest = None;
    loop {
        while status.store() != StoreStatus::Following {
            tokio::time::sleep(STATUS_PAUSE).await;
        }
        if let Err(error) = prune_old_changes(&log, &status, &*clock, keep, (started, &mut newest)).await {
            tracing::warn!("old changes were not pruned from the change log: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many changes are pruned at once: writers wait for it.
const STEP: u64 = 1_000;

/// When the newest change from before the server's start was made; the time of the start, if there was none.
async fn newest_change(store: &dyn Store, started: Timestamp) -> Result<Timestamp, StoreError> {
    let newest = store
        .change_log_entries(&ChangeLogQuery { until: Some(started), limit: 1, ..ChangeLogQuery::default() })
        .await?;
    Ok(newest.first().map_or(started, |entry| entry.change.at))
}

/// The time that has certainly been reached: at most the newest change from before the start, plus the uptime.
fn certain_time(now: Timestamp, newest: Timestamp, uptime: Duration) -> Timestamp {
    let since = SignedDuration::try_from(uptime).unwrap_or(SignedDuration::MAX);
    newest.saturating_add(since).map_or(now, |time| time.min(now))
}

/// Prunes the changes before the first one that is young enough.
async fn prune_old_changes(
    log: &ChangeLog,
    status: &Status,
    clock: &dyn Clock,
    keep: SignedDuration,
    (started, newest): (Timestamp, &mut Option<Timestamp>),
) -> Result<(), StoreError> {
    let Some(store) = log.opened_store() else { return Ok(()) };
    let (newest, is_first) = match *newest {
        Some(known) => (known, false),
        None => (*newest.insert(newest_change(&**store, started).await?), true),
    };
    let now = clock.now();
    let time = certain_time(now, newest, clock.uptime());
    let (Ok(since), Ok(since_by_clock)) = (time.checked_sub(keep), now.checked_sub(keep)) else { return Ok(()) };
    let LogBounds { horizon, head } = store.bounds().await?;
    let first = store.first_revision_since(since).await?.unwrap_or(head.revision);
    if is_first && store.first_revision_since(since_by_clock).await?.unwrap_or(head.revision) > first {
        tracing::warn!(
            clock = %now, newest = %newest,
            "changes that are older than HISTORY_RETENTION by the clock are kept: the newest change is from long before this \
             start, so the clock may be wrong; check it"
        );
    }
    let (mut at, mut step) = (horizon.revision.0, STEP);
    // A change log that diverged from the served snapshot is not pruned.
    while at + 1 < first.0 && status.store() == StoreStatus::Following {
        let next = (at + step).min(first.0 - 1);
        match store.prune(Revision(next)).await {
            Ok(_) => at = next,
            // The step may have been too large for a statement timeout.
            Err(error) if step > 1 && error.is_transient() => step /= 10,
            Err(error) => return Err(error),
        }
    }
    if at > horizon.revision.0 {
        tracing::info!(revision = at, "changes up to this revision are pruned");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_advances_from_the_newest_change_by_the_uptime() {
        let newest: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |now: &str, hours| certain_time(now.parse().unwrap(), newest, Duration::from_hours(hours)).to_string();
        assert_eq!(at("2026-01-01T02:00:00Z", 2), "2026-01-01T02:00:00Z", "the clock is right");
        assert_eq!(at("2040-01-01T00:00:00Z", 2), "2026-01-01T02:00:00Z", "it jumped ahead");
        assert_eq!(at("1970-01-01T00:00:00Z", 2), "1970-01-01T00:00:00Z", "it jumped back: no change is old");
    }
}
