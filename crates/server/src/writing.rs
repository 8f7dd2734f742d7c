//! How every change is made: edit a draft on the picture, review the picture that it would make, append, and answer
//! once the picture has come to it.
//!
//! Serializable without locks: the change is for the revision after the picture on which it was reviewed, and the store
//! takes it only there. If another process was first, the edit is made anew on the newer picture; so concurrent edits
//! never lose one another, and rules that span documents hold. Writers of this process think one after another, on what is
//! on its way too, and go to the store together ([`Queue`]).

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use fleet::{AllowedRemovals, Draft, EditError, Objections, Rule, Snapshot, plan_of_change};
use model::{Digest, FieldError, Kind, Plan, ProtectedCluster, RefusedRemovals, ResourceType, Revision, Write};

use crate::{
    App,
    access::WriteAccess,
    body::ACCEPT_PATCH,
    failure::Failure,
    queue::{Queue, Turn, Void},
    request_limits::Permit,
};

/// How often a writer starts anew because others were first. Each time, somebody made progress.
const TRIES: u32 = 100;

/// How long the picture may take to come to a change that is in the log.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of a change.
pub(crate) enum Outcome<T> {
    /// It would do this. Where it may be about the whole fleet, others wait until the plan is sent.
    Planned(Box<Plan>, Option<Permit>),
    /// It is done, or there was nothing to do; the picture has it.
    Done(Done<T>),
}

/// A change that was made.
pub(crate) struct Done<T> {
    /// Its revision or, where there was nothing to do, the picture's.
    pub(crate) revision: Revision,
    /// The picture, at this change or later.
    pub(crate) fleet: Arc<Snapshot>,
    /// What was written.
    pub(crate) writes: Vec<Write>,
    /// What the edit answered.
    pub(crate) value: T,
}

/// How much there is to think through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// One cluster, which takes a fraction of a millisecond.
    OneCluster,
    /// Perhaps all of them.
    Many,
}

/// How a change is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// Whether it is only planned.
    pub(crate) dry_run: bool,
    /// How many inputs it may take from protected clusters.
    pub(crate) allow_removals: usize,
}

/// Makes a change, or tells what it would do.
pub(crate) async fn write<T>(
    app: &App,
    access: &WriteAccess,
    about: About,
    Terms { dry_run, allow_removals }: Terms,
    edit: impl Fn(&mut Draft<'_>) -> Result<T, Failure>,
) -> Result<Outcome<T>, Failure> {
    if !dry_run {
        // Nobody queues for a store that is away.
        app.sound()?;
    }
    let mut permit = if dry_run && about == About::Many { Some(app.limits.plans.enter().await?) } else { None };
    for _ in 0..TRIES {
        // A dry run is in nobody's way.
        let mut turn = if dry_run { None } else { Some(turn(app).await?) };
        let newest = app.snapshot()?;
        let ahead = turn.as_mut().and_then(|turn| turn.ahead_of(&newest));
        let is_ahead = ahead.is_some();
        let fleet = ahead.unwrap_or(newest);
        let think = || {
            let mut draft = Draft::on(&fleet);
            let value = edit(&mut draft)?;
            let allowed = if dry_run { AllowedRemovals::Planned } else { AllowedRemovals::AtMost(allow_removals) };
            let (change, next) = draft.into_change(access.origin(app.clock.now()), allowed)?;
            let plan = dry_run.then(|| plan_of_change(&fleet, &next, &change.writes, allow_removals));
            let plan = plan.transpose().map_err(Failure::internal)?;
            Ok((change, next, value, plan))
        };
        // A change of ten thousand clusters takes a while to think through; polls go on meanwhile.
        let thought: Result<_, Failure> =
            if about == About::OneCluster { think() } else { tokio::task::block_in_place(think) };
        let has_more_to_do = matches!(&thought, Ok((change, .., plan)) if plan.is_some() || !change.writes.is_empty());
        if !has_more_to_do && !is_true(app, fleet.revision(), turn.take_if(|_| is_ahead)).await? {
            continue;
        }
        let (change, next, value, plan) = thought?;
        if let Some(plan) = plan {
            return Ok(Outcome::Planned(Box::new(plan), permit.take()));
        }
        let Some(turn) = turn.filter(|_| !change.writes.is_empty()) else {
            return Ok(Outcome::Done(Done { revision: fleet.revision(), fleet, writes: Vec::new(), value }));
        };
        app.sound()?;
        let (revision, writes) = (change.revision, change.writes.clone());
        if !came_of(app, turn.make(change, next).await).await? {
            continue;
        }
        reach(app, revision).await.map_err(|failure| not_visible(revision).because(failure.cause()))?;
        app.log.queue.settled(revision);
        return Ok(Outcome::Done(Done { revision, fleet: app.snapshot()?, writes, value }));
    }
    Err(busy("too many others write at the same time; nothing was done, and it can be tried again"))
}

/// Whether what was thought on a picture holds: that there is nothing to do, or that something may not be done. It holds on the
/// newest picture; if this was not, waits until that is there. Of a picture that is still on its way (`ahead`) it is known
/// when it has arrived: then it was the newest, after the request had come.
async fn is_true(app: &App, revision: Revision, ahead: Option<Turn<'_>>) -> Result<bool, Failure> {
    if let Some(ahead) = ahead {
        let arrived = came_of(app, ahead.wait_for_others().await).await?;
        if arrived {
            reach(app, revision).await?;
        }
        return Ok(arrived);
    }
    app.sound()?;
    let head =
        app.log.store()?.bounds().await.map_err(|error| Failure::store_unavailable().because(error))?.head.revision;
    reach(app, head).await?;
    Ok(head == revision)
}

/// Whether what was on its way has arrived; if it may be tried again, waits until there is a newer picture.
async fn came_of(app: &App, told: Result<(), Void>) -> Result<bool, Failure> {
    match told {
        Ok(()) => Ok(true),
        Err(Void::Again(newest)) => reach(app, newest).await.map(|()| false),
        Err(Void::Failed(failure)) => Err(failure),
    }
}

/// Waits for one's turn to think.
async fn turn(app: &App) -> Result<Turn<'_>, Failure> {
    tokio::time::timeout(PATIENCE, Queue::turn(&app.log))
        .await
        .map_err(|_| busy("the changes before this one take long; nothing was done, and it can be tried again"))
}

/// Nothing was done, because others write.
fn busy(detail: &str) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).with_header(RETRY_AFTER, Failure::RETRY)
}

fn not_visible(revision: Revision) -> Failure {
    let detail = format!("the change was made, as revision {revision}, and this server does not see it yet");
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-yet-visible", detail).with_header(RETRY_AFTER, Failure::RETRY)
}

async fn reach(app: &App, revision: Revision) -> Result<(), Failure> {
    for _ in 0..PATIENCE.as_secs() {
        if tokio::time::timeout(Duration::from_secs(1), app.log.reached(revision)).await.is_ok() {
            return Ok(());
        }
        app.sound()?;
    }
    Err(Failure::store_unavailable().because(format!("the picture did not come to revision {revision}")))
}

/// Waits until another picture is served than the one of this digest.
pub(crate) async fn turned(app: &App, from: &Digest) -> Result<(), Failure> {
    for _ in 0..PATIENCE.as_secs() {
        let mut published = app.log.subscribe();
        if app.snapshot()?.point().digest != *from {
            return Ok(());
        }
        // Whatever comes, or nothing: it is looked again.
        let _ = tokio::time::timeout(Duration::from_secs(1), published.changed()).await;
    }
    Err(Failure::store_unavailable().because("the picture did not turn to the log"))
}

impl From<Objections> for Failure {
    fn from(objections: Objections) -> Self {
        let broken = match objections {
            Objections::Rules(broken) => broken,
            Objections::ProtectedCluster(id) => return EditError::Protected(id).into(),
            Objections::ProtectedInputs(removed) => {
                return removed
                    .refused(0)
                    .map_or_else(|| Self::internal("nothing is removed from protected clusters"), protected);
            }
        };
        let held = [Rule::DuplicateDns, Rule::TombstoneDns].map(Rule::name);
        match broken.first() {
            Some(first) if first.rule == Rule::TypesChanged.name() => Self::types_changed(first.message.clone()),
            Some(first) if broken.iter().all(|error| held.contains(&error.rule.as_ref())) => {
                Self::new(StatusCode::CONFLICT, "dns-held", first.message.clone()).with_errors(broken)
            }
            _ => Self::invalid(broken),
        }
    }
}

/// A change that would take inputs from protected clusters.
fn protected(refused: RefusedRemovals) -> Failure {
    let of_cluster = |ProtectedCluster { id, removed }: ProtectedCluster| {
        let kind = Kind::from(ResourceType::CLUSTER);
        FieldError::new("", "protected", format!("inputs that would be removed: {removed}")).in_document(&kind, &id)
    };
    let errors = refused.clusters.into_iter().map(of_cluster).collect();
    Failure::new(StatusCode::CONFLICT, "protected", refused.detail).with_errors(errors)
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let (status, code) = match &error {
            EditError::NotFound { .. } => (StatusCode::NOT_FOUND, "not-found"),
            EditError::Decommissioned(_) => (StatusCode::GONE, "decommissioned"),
            EditError::NotDecommissioned(_) => (StatusCode::CONFLICT, "not-decommissioned"),
            EditError::Exists { .. } => (StatusCode::CONFLICT, "exists"),
            EditError::Referenced { by, .. } => {
                let referrer = |name: &String| FieldError {
                    document: Some(name.clone()),
                    ..FieldError::new("", "referenced", "it refers to the document")
                };
                let failure = Self::new(StatusCode::CONFLICT, "referenced", error.to_string());
                return failure.with_errors(by.iter().map(referrer).collect());
            }
            EditError::Protected(_) => (StatusCode::CONFLICT, "protected"),
            EditError::AmbiguousPatch { is_strategic, .. } => {
                let types = HeaderValue::from_static(if *is_strategic {
                    "application/strategic-merge-patch+json"
                } else {
                    "application/merge-patch+json, application/strategic-merge-patch+json"
                });
                let failure = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "ambiguous-patch", error.to_string());
                return failure.with_header(ACCEPT_PATCH, types);
            }
            EditError::Invalid(errors) => return Self::invalid(errors.clone()),
        };
        Self::new(status, code, error.to_string())
    }
}
