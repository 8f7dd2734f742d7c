//! Retention: the log forgets changes that are older than a setting says. The present stays what it is.
//!
//! What is forgotten never comes back, and a clock can jump. So the age of a change is counted up to the newest change from before this
//! server's start, plus the time for which the server has run, which no clock setting moves; or up to the clock, where that says
//! earlier. What the server itself has written says nothing: it is from the same clock. A clock that jumps ahead forgets
//! nothing by itself: a change would have to be written with it, and a server started. What is refused for that: a log that had no change
//! for long keeps its history for as much longer, until a server starts after the next change.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use model::Revision;
use store::{ChangeLogQuery, LogBounds, Store, StoreError};

use crate::{Clock, Log, Status, StoreStatus};

/// How often the log is looked through.
const PAUSE: Duration = Duration::from_mins(10);

const MOMENT: Duration = Duration::from_secs(1);

/// Forgets what is older than `keep`, for ever.
pub async fn retain(log: Arc<Log>, status: Arc<Status>, clock: Arc<dyn Clock>, keep: SignedDuration) {
    // There is nothing to forget before the first change.
    log.reached(Revision::ZERO.next()).await;
    let started = clock.now().checked_sub(clock.uptime()).unwrap_or(Timestamp::MIN);
    let mut newest = None;
    loop {
        while status.store() != StoreStatus::Following {
            tokio::time::sleep(MOMENT).await;
        }
        if let Err(error) = forget(&log, &status, &*clock, keep, (started, &mut newest)).await {
            tracing::warn!("old changes were not forgotten: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many changes are forgotten at once: writers wait for it.
const STEP: u64 = 1_000;

/// When the newest change was made that the log had before the server's start; or when that was, where it had none.
async fn newest_change(store: &dyn Store, started: Timestamp) -> Result<Timestamp, StoreError> {
    let newest = store
        .change_log_entries(&ChangeLogQuery { until: Some(started), limit: 1, ..ChangeLogQuery::default() })
        .await?;
    Ok(newest.first().map_or(started, |entry| entry.change.at))
}

/// What time it is for certain: not after the newest change that there was at first, plus the time since.
fn certain_time(now: Timestamp, newest: Timestamp, uptime: Duration) -> Timestamp {
    let since = SignedDuration::try_from(uptime).unwrap_or(SignedDuration::MAX);
    newest.saturating_add(since).map_or(now, |time| time.min(now))
}

/// Forgets the changes before the first one that is young enough.
async fn forget(
    log: &Log,
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
            "changes that the clock calls older than HISTORY_RETENTION are kept: the newest change that there was is from \
             long before this start, and the clock may be wrong"
        );
    }
    let (mut at, mut step) = (horizon.revision.0, STEP);
    // Of a log that is not the one that is served, nothing is forgotten.
    while at + 1 < first.0 && status.store() == StoreStatus::Following {
        let next = (at + step).min(first.0 - 1);
        match store.prune(Revision(next)).await {
            Ok(_) => at = next,
            // Too much at once, perhaps.
            Err(error) if step > 1 && error.is_transient() => step /= 10,
            Err(error) => return Err(error),
        }
    }
    if at > horizon.revision.0 {
        tracing::info!(revision = at, "changes up to this revision are forgotten");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_the_newest_change_as_fast_as_the_server_runs() {
        let newest: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |now: &str, hours| certain_time(now.parse().unwrap(), newest, Duration::from_hours(hours)).to_string();
        assert_eq!(at("2026-01-01T02:00:00Z", 2), "2026-01-01T02:00:00Z", "the clock is right");
        assert_eq!(at("2040-01-01T00:00:00Z", 2), "2026-01-01T02:00:00Z", "it jumped ahead");
        assert_eq!(at("1970-01-01T00:00:00Z", 2), "1970-01-01T00:00:00Z", "it jumped back: nothing is old");
    }
}
