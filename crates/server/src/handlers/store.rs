//! `GET /store`: what is served, and where the change log ends. `POST /store/accept`: an operator accepts a change log that diverged
//! from the served snapshot: after a failover to a database that lost its last changes, or after a backup was restored.
//!
//! The acceptance is a change of the change log, in a new epoch, and names the digest that it overrules. Every server that serves
//! exactly this digest follows the change log from there; a server that has served something else keeps what it serves.

use api::{ChangeLogStatus, StoreAcceptance, StoreState};
use axum::{
    Json,
    extract::State,
    http::HeaderValue,
    response::{IntoResponse as _, Response},
};
use fleet::{Snapshot, plan_of_acceptance};
use model::{Change, Digest, FieldError, Point};
use store::AppendError;

use super::{
    answers::{REVISION, planned},
    mutation, past,
};
use crate::{
    App, StoreStatus,
    access::{ReadAccess, WriteAccess},
    failure::{ErrorStatus, Failure, protected},
    query::Params,
    writing::{self, Terms},
};

const DIGEST: &str = "a digest of 64 hexadecimal digits";

pub(crate) async fn store(
    access: ReadAccess,
    State(app): State<App>,
    params: Params,
) -> Result<Json<StoreState>, Failure> {
    params.none_left()?;
    let fleet = access.fleet()?;
    let head = {
        let _permit = app.limits.past.enter().await?;
        match access.store() {
            Ok(store) => store.bounds().await.ok().map(|ends| ends.head),
            Err(_) => None,
        }
    };
    Ok(Json(StoreState {
        status: app.status.store().into(),
        age_seconds: app.status.age(app.clock.uptime()).as_secs_f64(),
        picture: *fleet.point(),
        log: head,
    }))
}

impl From<StoreStatus> for ChangeLogStatus {
    fn from(status: StoreStatus) -> Self {
        match status {
            StoreStatus::Starting => Self::Starting,
            StoreStatus::Following => Self::Following,
            StoreStatus::Unavailable => Self::Unavailable,
            StoreStatus::Diverged(_) => Self::Diverged,
        }
    }
}

pub(crate) async fn accept(
    access: WriteAccess,
    State(app): State<App>,
    mut params: Params,
) -> Result<Response, Failure> {
    let Terms { dry_run, allow_removals } = mutation::terms(&mut params)?;
    let expected = params.parsed::<Digest>("expected_digest", DIGEST)?.ok_or_else(|| {
        let rule = "the digest of the accepted change log, log.digest of GET /store, is needed";
        Failure::invalid_query(FieldError::new("/expected_digest", "required", rule))
    })?;
    let other_served = params.parsed::<Digest>("served", DIGEST)?;
    let expected_point = mutation::ExpectedPoint::take(&mut params)?;
    params.none_left()?;
    let snapshot = access.fleet()?;
    expected_point.check(snapshot.point())?;
    let log = access.reading().store()?.load().await.map_err(past::unreadable)?;
    let head = log.point;
    expect(expected, &snapshot, &head)?;
    let here = snapshot.point().digest;
    let served = match (other_served, app.status.store()) {
        (Some(other), _) => other,
        (None, StoreStatus::Diverged(_)) => here,
        (None, StoreStatus::Following) => return Err(not_diverged()),
        (None, StoreStatus::Starting | StoreStatus::Unavailable) => return Err(Failure::store_unavailable()),
    };
    let is_about_this_server = served == here;
    if dry_run || is_about_this_server {
        let permit = app.limits.plans.enter().await?;
        // What another server serves is not known here, so neither is what its protected clusters would lose.
        let allowed = if is_about_this_server { allow_removals } else { usize::MAX };
        let plan = tokio::task::block_in_place(|| {
            let next = Snapshot::load(app.registry.clone(), head, log.documents)?;
            plan_of_acceptance(&snapshot, &next, allowed)
        });
        let plan = plan.map_err(Failure::internal)?;
        if dry_run {
            return planned(plan, Some(permit));
        }
        if let Some(refused) = plan.refused {
            return Err(protected(refused));
        }
    }
    // Revisions of the new epoch may be those of what is overruled, so it is an epoch that neither history has had.
    let epoch = head.epoch.max(snapshot.point().epoch);
    let change = Change::accepting(&Point { epoch, ..head }, &served, access.origin(app.clock.now()));
    match access.reading().store()?.append(&change).await {
        Ok(()) => app.change_log.request_refresh(),
        Err(AppendError::Conflict { head }) => return Err(moved(&head)),
        Err(AppendError::Store(error)) => return Err(Failure::store_unavailable().because(error)),
    }
    tracing::warn!(log = %head, %served, "an operator accepted the change log");
    if served == here {
        writing::snapshot_replaced(&app, &access, &here).await?;
    }
    let accepted = StoreAcceptance { revision: change.revision, epoch: change.epoch, overrules: served };
    Ok(([(REVISION, HeaderValue::from(change.revision.0))], Json(accepted)).into_response())
}

/// The change log that the operator saw is the one that is accepted, and it is a change log of this fleet.
fn expect(expected: Digest, served: &Snapshot, head: &Point) -> Result<(), Failure> {
    if served.point().store != head.store {
        let detail = "the store has the log of another fleet: put a backup back, or the SNAPSHOT_FILE of a server";
        return Err(Failure::new(ErrorStatus::CONFLICT, "another-log", detail));
    }
    if expected == head.digest { Ok(()) } else { Err(moved(head)) }
}

fn moved(head: &Point) -> Failure {
    let detail = format!("the log is at revision {}, and not what the request expects", head.revision);
    Failure::new(ErrorStatus::PRECONDITION_FAILED, "log-changed", detail)
}

/// This server cannot know what clusters of another server would lose.
fn not_diverged() -> Failure {
    let detail = "this server follows the log; where another does not, accept there, or tell by \"served\" the digest of \
                  what it serves";
    Failure::new(ErrorStatus::CONFLICT, "not-diverged", detail)
}
