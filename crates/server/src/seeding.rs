//! The first change of an empty change log: the seed.
//!
//! A seed is loaded only into a change log without any change, and is itself a change. If the snapshot file shows that this
//! server has served a fleet before, the follower does not seed: the change log has lost its data then.

use std::{path::Path, sync::Arc};

use fleet::{ProblemFilter, Rule, Snapshot, repeated_dns_names};
use model::{Change, Origin, Point, Registry, Revision, Write};
use store::{AppendError, Store, StoreError, seed};

use crate::Clock;

/// The actor of the first change.
pub(crate) const ACTOR: &str = "seed";

/// Why a change log was not seeded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedingError {
    /// The seed cannot be used.
    #[error("{0}")]
    Seed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Appends the seed as the first change if the change log has none yet.
pub(crate) async fn seed_if_empty(
    store: &dyn Store,
    registry: &Arc<Registry>,
    file: &Path,
    clock: &dyn Clock,
) -> Result<(), SeedingError> {
    let head = store.bounds().await?.head;
    if head.revision > Revision::ZERO {
        tracing::debug!(revision = head.revision.0, "the change log has changes, so SEED_FILE is not read");
        return Ok(());
    }
    let change = first_change(&head, registry, file, clock)
        .map_err(|message| SeedingError::Seed(format!("SEED_FILE {}: {message}", file.display())))?;
    match store.append(&change).await {
        Ok(()) => tracing::info!(documents = change.writes.len(), "the change log was empty and begins with SEED_FILE"),
        // Another process appended its seed first.
        Err(AppendError::Conflict { .. }) => {}
        Err(AppendError::Store(error)) => return Err(error.into()),
    }
    Ok(())
}

/// The seed as the first change. Fails if the fleet could not be served completely.
fn first_change(beginning: &Point, registry: &Arc<Registry>, file: &Path, clock: &dyn Clock) -> Result<Change, String> {
    let mut writes = seed::read(file, registry).map_err(|error| error.to_string())?;
    refuse_repeated_names(&writes)?;
    let empty = Snapshot::load(registry.clone(), *beginning, []).map_err(|error| error.to_string())?;
    writes.extend(empty.unrecorded_types());
    let origin = Origin {
        at: clock.now(),
        actor: ACTOR.to_owned(),
        reason: Some("the log was empty".to_owned()),
        request_id: None,
    };
    let change = Change::after(beginning, origin, writes);
    let fleet = empty.apply(&change).map_err(|error| error.to_string())?;
    refuse_broken(&fleet)?;
    Ok(change)
}

/// How many problems of each rule an error message lists.
const LISTED: u64 = 5;

/// Refuses clusters that have one name twice, as a request that creates them would.
fn refuse_repeated_names(writes: &[Write]) -> Result<(), String> {
    let broken: Vec<_> = writes
        .iter()
        .flat_map(|write| {
            let name = move |error| format!("{} \"{}\": {error}", write.kind, write.id);
            repeated_dns_names(write).into_iter().map(name)
        })
        .take(100)
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
}

/// Refuses a fleet with problems for which polls would be refused.
fn refuse_broken(fleet: &Snapshot) -> Result<(), String> {
    let mut broken = Vec::new();
    for rule in Rule::ALL.into_iter().filter(|rule| !rule.is_tolerated()) {
        let page = fleet.problem_page(&ProblemFilter { rule: Some(rule), ..ProblemFilter::default() }, 0, LISTED);
        broken.extend(page.problems.iter().map(ToString::to_string));
        let more = page.total.saturating_sub(LISTED);
        broken.extend((more > 0).then(|| format!("and {more} more ({})", rule.name())));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
}
