//! How every change is made, in three phases: prepare, commit, publish.
//!
//! 1. [`prepare`]: the edit is made on a draft of the newest snapshot, and the snapshot that results from it is reviewed.
//! 2. [`commit`]: the change is appended to the change log by compare-and-swap, together with other changes that wait
//!    ([`group_commit`](crate::group_commit)).
//! 3. [`publish`]: the request is answered once the snapshot with the change is served.
//!
//! The change is for the revision after the snapshot on which it was prepared, and the store appends it only there. If another
//! change was first, all phases are repeated on the newer snapshot. So concurrent edits never lose one another, and rules
//! about several documents hold, without locks and across processes.

use std::{sync::Arc, time::Duration};

use axum::http::header::RETRY_AFTER;
use fleet::{AllowedRemovals, Draft, Snapshot, plan_of_change};
use model::{Change, Digest, Plan, Revision, Write};

use crate::{
    App,
    access::WriteAccess,
    failure::{ErrorStatus, Failure},
    group_commit::{CommitError, GroupCommit, PrepareTurn},
    request_limits::Permit,
};

/// How often a change is prepared because others were first. Each time, one of the others has succeeded.
const ATTEMPTS: u32 = 100;

/// How long it may take until the snapshot with a change is served.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of a change.
pub(crate) enum Outcome<T> {
    /// It would do this. If it may be about the whole fleet, it holds the slot of a plan until the plan is sent.
    Planned(Box<Plan>, Option<Permit>),
    /// It is made, or there was nothing to do.
    Done(Done<T>),
}

/// A change that was made.
pub(crate) struct Done<T> {
    /// Its revision or, if there was nothing to do, that of the snapshot.
    pub(crate) revision: Revision,
    /// The served snapshot, at this change or later.
    pub(crate) fleet: Arc<Snapshot>,
    /// What was written.
    pub(crate) writes: Vec<Write>,
    /// What the edit returned.
    pub(crate) value: T,
}

/// How many clusters an edit may be about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// One cluster: preparing takes a fraction of a millisecond.
    OneCluster,
    /// Perhaps all of them.
    Many,
}

/// How a change is requested.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// Whether it is only planned.
    pub(crate) dry_run: bool,
    /// How many inputs it may take from protected clusters.
    pub(crate) allow_removals: usize,
}

/// A change that was prepared on a snapshot.
struct Prepared<'a, T> {
    base: Arc<Snapshot>,
    /// Whether the base is a pending head, which is not appended yet.
    is_pending: bool,
    /// The right to queue the change. A dry run has none.
    turn: Option<PrepareTurn<'a>>,
    /// The change, or why it is rejected.
    evaluated: Result<Evaluated<T>, Failure>,
}

/// What an edit comes to.
struct Evaluated<T> {
    change: Change,
    next: Snapshot,
    value: T,
    /// Only of a dry run.
    plan: Option<Plan>,
}

/// Makes a change, or plans it.
pub(crate) async fn write<T>(
    app: &App,
    access: &WriteAccess,
    about: About,
    terms: Terms,
    edit: impl Fn(&mut Draft<'_>) -> Result<T, Failure>,
) -> Result<Outcome<T>, Failure> {
    let is_large_plan = terms.dry_run && about == About::Many;
    if !terms.dry_run {
        // No writer queues for a store that is unavailable.
        app.ensure_healthy()?;
    }
    let permit = if is_large_plan { Some(app.limits.plans.enter().await?) } else { None };
    for _ in 0..ATTEMPTS {
        let Prepared { base, is_pending, turn, evaluated } = prepare(app, access, about, terms, &edit).await?;
        match (evaluated, turn) {
            (Ok(Evaluated { plan: Some(plan), .. }), _) => return Ok(Outcome::Planned(Box::new(plan), permit)),
            (Ok(Evaluated { change, next, value, .. }), Some(turn)) if !change.writes.is_empty() => {
                let (revision, writes) = (change.revision, change.writes.clone());
                if commit(app, turn, change, next).await? {
                    let fleet = publish(app, access, revision).await?;
                    return Ok(Outcome::Done(Done { revision, fleet, writes, value }));
                }
            }
            // A rejection, or nothing to do: true only of the newest snapshot.
            (evaluated, turn) => {
                if confirm_current(app, base.revision(), is_pending, turn).await? {
                    let value = evaluated?.value;
                    let (revision, writes) = (base.revision(), Vec::new());
                    return Ok(Outcome::Done(Done { revision, fleet: base, writes, value }));
                }
            }
        }
    }
    Err(busy("too many other changes are made at the same time; nothing was done, and it can be tried again"))
}

/// First phase: makes the edit on a draft of the newest snapshot, pending changes included, and reviews the result. A dry run is made on
/// the served snapshot, and delays no writer.
async fn prepare<'a, T>(
    app: &'a App,
    access: &WriteAccess,
    about: About,
    Terms { dry_run, allow_removals }: Terms,
    edit: &impl Fn(&mut Draft<'_>) -> Result<T, Failure>,
) -> Result<Prepared<'a, T>, Failure> {
    let mut turn = if dry_run { None } else { Some(turn(app).await?) };
    let served = access.fleet()?;
    let pending = turn.as_mut().and_then(|turn| turn.pending_head(&served));
    let is_pending = pending.is_some();
    let base = pending.unwrap_or(served);
    let evaluate = || {
        let mut draft = Draft::on(&base);
        let value = edit(&mut draft)?;
        let allowed = if dry_run { AllowedRemovals::Planned } else { AllowedRemovals::AtMost(allow_removals) };
        let (change, next) = draft.into_change(access.origin(app.clock.now()), allowed)?;
        let plan = dry_run.then(|| plan_of_change(&base, &next, &change.writes, allow_removals));
        let plan = plan.transpose().map_err(Failure::internal)?;
        Ok(Evaluated { change, next, value, plan })
    };
    // A change of ten thousand clusters takes a while; other tasks of this thread go on meanwhile.
    let evaluated = if about == About::OneCluster { evaluate() } else { tokio::task::block_in_place(evaluate) };
    Ok(Prepared { base, is_pending, turn, evaluated })
}

/// Second phase: queues the change and waits until it is appended. Returns false if another change was appended first; then the newer
/// snapshot is served already.
async fn commit(app: &App, turn: PrepareTurn<'_>, change: Change, next: Snapshot) -> Result<bool, Failure> {
    app.ensure_healthy()?;
    retry_if_superseded(app, turn.commit(change, next).await).await
}

/// Third phase: waits until the snapshot with the change is served.
async fn publish(app: &App, access: &WriteAccess, revision: Revision) -> Result<Arc<Snapshot>, Failure> {
    reach(app, revision).await.map_err(|failure| not_visible(revision).because(failure.cause()))?;
    app.change_log.group_commit.published(revision);
    access.fleet()
}

/// Whether a revision is the newest: a rejection that was computed on it, or that there is nothing to do, is returned only then. If it
/// is not, waits until a newer snapshot is served. Of a pending head that is known once its changes are appended.
async fn confirm_current(
    app: &App,
    revision: Revision,
    is_pending: bool,
    turn: Option<PrepareTurn<'_>>,
) -> Result<bool, Failure> {
    // Other writers wait meanwhile: the turn ends with this function.
    let turn = match turn {
        Some(turn) if is_pending => {
            let is_appended = retry_if_superseded(app, turn.wait_for_pending().await).await?;
            if is_appended {
                reach(app, revision).await?;
            }
            return Ok(is_appended);
        }
        turn => turn,
    };
    app.ensure_healthy()?;
    let ends = app.change_log.store()?.bounds().await.map_err(|error| Failure::store_unavailable().because(error))?;
    reach(app, ends.head.revision).await?;
    drop(turn);
    Ok(ends.head.revision == revision)
}

/// Whether changes were appended. If others were first, waits until their snapshot is served, so that the caller can prepare again.
async fn retry_if_superseded(app: &App, outcome: Result<(), CommitError>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(CommitError::Superseded(newest)) => reach(app, newest).await.map(|()| false),
        Err(CommitError::Failed(failure)) => Err(failure),
    }
}

/// Waits until this writer may prepare.
async fn turn(app: &App) -> Result<PrepareTurn<'_>, Failure> {
    tokio::time::timeout(PATIENCE, GroupCommit::turn(&app.change_log))
        .await
        .map_err(|_| busy("the changes before this one take long; nothing was done, and it can be tried again"))
}

/// Nothing was done, because others write.
fn busy(detail: &str) -> Failure {
    Failure::new(ErrorStatus::SERVICE_UNAVAILABLE, "busy", detail).with_header(RETRY_AFTER, Failure::RETRY)
}

fn not_visible(revision: Revision) -> Failure {
    let detail = format!("the change was made, as revision {revision}, and this server does not serve it yet");
    Failure::new(ErrorStatus::SERVICE_UNAVAILABLE, "not-yet-visible", detail).with_header(RETRY_AFTER, Failure::RETRY)
}

async fn reach(app: &App, revision: Revision) -> Result<(), Failure> {
    for _ in 0..PATIENCE.as_secs() {
        if tokio::time::timeout(Duration::from_secs(1), app.change_log.reached(revision)).await.is_ok() {
            return Ok(());
        }
        app.ensure_healthy()?;
    }
    Err(Failure::store_unavailable().because(format!("revision {revision} is not served yet")))
}

/// Waits until another snapshot is served than the one with this digest.
pub(crate) async fn snapshot_replaced(app: &App, access: &WriteAccess, from: &Digest) -> Result<(), Failure> {
    for _ in 0..PATIENCE.as_secs() {
        let mut published = app.change_log.subscribe();
        if access.fleet()?.point().digest != *from {
            return Ok(());
        }
        // Whether a snapshot was published or the time is over: the digest is compared again.
        let _ = tokio::time::timeout(Duration::from_secs(1), published.changed()).await;
    }
    Err(Failure::store_unavailable().because("the accepted change log is not served yet"))
}
