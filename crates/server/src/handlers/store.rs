//! `GET /store`: what is served, and where the change log ends. `POST /store/accept`: an operator accepts a change log that diverged
//! from the served snapshot: after a failover to a database that lost its last changes, or after a backup was restored.
//!
//! The acceptance is a change of the change log, in a new epoch, and names the digest that it overrules. Every server that serves
//! exactly this digest follows the change log from there; a server that has served something else keeps what it serves.

use api::{ChangeLogStatus, StoreAcceptance, StoreState};
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use fleet::{Snapshot, SnapshotError, difference, plan};
use model::{Change, Digest, FieldError, Point};
use store::AppendError;

use super::{answers::REVISION, mutation, past};
use crate::{
    App, StoreStatus,
    access::{ReadAccess, WriteAccess},
    failure::Failure,
    query::Params,
    writing,
};

const DIGEST: &str = "a digest of 64 hexadecimal digits";

pub(crate) async fn store(_: ReadAccess, State(app): State<App>, params: Params) -> Result<Json<StoreState>, Failure> {
    params.none_left()?;
    let fleet = app.snapshot()?;
    let head = {
        let _permit = app.limits.past.enter().await?;
        match app.log.store() {
            Ok(store) => store.ends().await.ok().map(|ends| ends.head),
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
    let dry_run = params.flag("dry_run")?;
    let expected = params.parsed::<Digest>("expected_digest", DIGEST)?.ok_or_else(|| {
        let rule = "the digest of the accepted change log, log.digest of GET /store, is needed";
        Failure::invalid_query(FieldError::new("/expected_digest", "required", rule))
    })?;
    let other_served = params.parsed::<Digest>("served", DIGEST)?;
    let expected_revision = params.revision("expected_revision")?;
    params.none_left()?;
    let snapshot = app.snapshot()?;
    mutation::expect(expected_revision, snapshot.revision())?;
    let log = app.log.store()?.load().await.map_err(past::unreadable)?;
    let head = log.point;
    expect(expected, &snapshot, &head)?;
    let here = snapshot.point().digest;
    let served = match (other_served, app.status.store()) {
        (Some(other), _) => other,
        (None, StoreStatus::Diverged(_)) => here,
        (None, StoreStatus::Following) => return Err(not_diverged()),
        (None, StoreStatus::Starting | StoreStatus::Unavailable) => return Err(Failure::store_unavailable()),
    };
    if dry_run {
        let plan = tokio::task::block_in_place(|| {
            let next = Snapshot::load(app.registry.clone(), head, log.documents)?;
            Ok::<_, SnapshotError>(plan(&snapshot, &next, &difference(&snapshot, &next)))
        });
        return Ok(Json(plan.map_err(Failure::internal)?).into_response());
    }
    let change = Change::accepting(&head, &served, access.origin(app.clock.now()));
    match app.log.store()?.append(&change).await {
        Ok(()) => app.log.look(),
        Err(AppendError::Conflict { head }) => return Err(moved(&head)),
        Err(AppendError::Store(error)) => return Err(Failure::store_unavailable().because(error)),
    }
    tracing::warn!(log = %head, %served, "an operator accepted the change log");
    if served == here {
        writing::turned(&app, &here).await?;
    }
    let accepted = StoreAcceptance { revision: change.revision, epoch: change.epoch, overrules: served };
    Ok(([(REVISION, HeaderValue::from(change.revision.0))], Json(accepted)).into_response())
}

/// The change log that the operator saw is the one that is accepted, and it is a change log of this fleet.
fn expect(expected: Digest, served: &Snapshot, head: &Point) -> Result<(), Failure> {
    if served.point().store != head.store {
        let detail = "the store has the log of another fleet: put a backup back, or the SNAPSHOT_FILE of a server";
        return Err(Failure::new(StatusCode::CONFLICT, "another-log", detail));
    }
    if expected == head.digest { Ok(()) } else { Err(moved(head)) }
}

fn moved(head: &Point) -> Failure {
    let detail = format!("the log is at revision {}, and not what the request expects", head.revision);
    Failure::new(StatusCode::PRECONDITION_FAILED, "log-changed", detail)
}

/// This server cannot know what clusters of another server would lose.
fn not_diverged() -> Failure {
    let detail = "this server follows the log; where another does not, accept there, or tell by \"served\" the digest of \
                  what it serves";
    Failure::new(StatusCode::CONFLICT, "not-diverged", detail)
}
