//! The first change of a log that never had one.
//!
//! A seed is read only into a log without any change, and is itself a change: a log that lost its data is not quietly
//! filled with the beginnings of a fleet a second time by the process that knew better.

use std::{path::Path, sync::Arc};

use fleet::{ProblemFilter, Rule, Snapshot};
use model::{Change, Origin, Point, Registry, Revision};
use store::{AppendError, Store, StoreError, seed};

use crate::Clock;

/// Who makes the first change.
pub(crate) const ACTOR: &str = "seed";

/// Why a log was not seeded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedingError {
    /// The seed cannot be used.
    #[error("{0}")]
    Seed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Loads the seed if the log has no change yet.
pub(crate) async fn plant(
    store: &dyn Store,
    registry: &Arc<Registry>,
    file: &Path,
    clock: &dyn Clock,
) -> Result<(), SeedingError> {
    let head = store.bounds().await?.head;
    if head.revision > Revision::ZERO {
        tracing::debug!(revision = head.revision.0, "the log has changes, so the seed is not read");
        return Ok(());
    }
    let change = first_change(&head, registry, file, clock)
        .map_err(|what| SeedingError::Seed(format!("SEED_FILE {}: {what}", file.display())))?;
    match store.append(&change).await {
        Ok(()) => tracing::info!(documents = change.writes.len(), "the log was empty and begins with the seed"),
        // Another process was first, with its own.
        Err(AppendError::Conflict { .. }) => {}
        Err(AppendError::Store(error)) => return Err(error.into()),
    }
    Ok(())
}

/// The seed as a change that makes a servable fleet.
fn first_change(beginning: &Point, registry: &Arc<Registry>, file: &Path, clock: &dyn Clock) -> Result<Change, String> {
    let mut writes = seed::read(file, registry).map_err(|error| error.to_string())?;
    let blank = Snapshot::load(registry.clone(), *beginning, []).map_err(|error| error.to_string())?;
    writes.extend(blank.unrecorded_types());
    let origin = Origin {
        at: clock.now(),
        actor: ACTOR.to_owned(),
        reason: Some("the log was empty".to_owned()),
        request_id: None,
    };
    let change = Change::after(beginning, origin, writes);
    let fleet = blank.apply(&change).map_err(|error| error.to_string())?;
    refuse_broken(&fleet)?;
    Ok(change)
}

/// As many problems of each rule are named in a refusal.
const NAMED: u64 = 5;

/// Refuses a fleet in which something is wrong for which polls would be refused.
fn refuse_broken(fleet: &Snapshot) -> Result<(), String> {
    let mut broken = Vec::new();
    for rule in Rule::ALL.into_iter().filter(|rule| !rule.is_tolerated()) {
        let page = fleet.problem_page(&ProblemFilter { rule: Some(rule), ..ProblemFilter::default() }, 0, NAMED);
        broken.extend(page.problems.iter().map(ToString::to_string));
        let more = page.total.saturating_sub(NAMED);
        broken.extend((more > 0).then(|| format!("and {more} more ({})", rule.name())));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
}
