//! `GET /store`: what is served and what the log says. `POST /store/accept`: an operator's word that the log is to be
//! followed, though it does not continue what is served: after a failover to a database that lost its end, or over a
//! backup that was put back.
//!
//! The word is a change of the log, in a new epoch, and names what it overrules. Every server that holds on to just that sees
//! it and turns; one that has served something else holds on.

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use fleet::{Snapshot, SnapshotError, difference, plan};
use model::{Change, Digest, FieldError, Point, Value};
use serde_json::json;
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

pub(crate) async fn store(_: ReadAccess, State(app): State<App>, params: Params) -> Result<Json<Value>, Failure> {
    params.none_left()?;
    let fleet = app.snapshot()?;
    let head = {
        let _permit = app.limits.past.enter().await?;
        match app.log.store() {
            Ok(store) => store.bounds().await.ok().map(|ends| ends.head),
            Err(_) => None,
        }
    };
    Ok(Json(json!({
        "status": app.status.store().name(),
        "age_seconds": app.status.age(app.clock.uptime()).as_secs_f64(),
        "picture": fleet.point(),
        "log": head,
    })))
}

pub(crate) async fn accept(
    access: WriteAccess,
    State(app): State<App>,
    mut params: Params,
) -> Result<Response, Failure> {
    let dry_run = params.flag("dry_run")?;
    let expected = params.parsed::<Digest>("expected_digest", DIGEST)?.ok_or_else(|| {
        let rule = "the digest of the log that was looked at, as GET /store tells it, is needed";
        Failure::invalid_query(FieldError::new("/expected_digest", "required", rule))
    })?;
    let elsewhere = params.parsed::<Digest>("served", DIGEST)?;
    let expected_revision = params.revision("expected_revision")?;
    params.none_left()?;
    let picture = app.snapshot()?;
    mutation::expect(expected_revision, picture.revision())?;
    let log = app.log.store()?.load().await.map_err(past::unreadable)?;
    let head = log.point;
    expect(expected, &picture, &head)?;
    let here = picture.point().digest;
    let served = match (elsewhere, app.status.store()) {
        (Some(elsewhere), _) => elsewhere,
        (None, StoreStatus::Diverged(_)) => here,
        (None, StoreStatus::Following) => return Err(not_diverged()),
        (None, StoreStatus::Starting | StoreStatus::Unavailable) => return Err(Failure::store_unavailable()),
    };
    if dry_run {
        let plan = tokio::task::block_in_place(|| {
            let next = Snapshot::load(app.registry.clone(), head, log.documents)?;
            Ok::<_, SnapshotError>(plan(&picture, &next, &difference(&picture, &next)))
        });
        return Ok(Json(plan.map_err(Failure::internal)?).into_response());
    }
    let word = Change::accepting(&head, &served, access.origin(app.clock.now()));
    match app.log.store()?.append(&word).await {
        Ok(()) => app.log.look(),
        Err(AppendError::Conflict { head }) => return Err(moved(&head)),
        Err(AppendError::Store(error)) => return Err(Failure::store_unavailable().because(error)),
    }
    tracing::warn!(log = %head, %served, "an operator has accepted the log");
    if served == here {
        writing::turned(&app, &here).await?;
    }
    let told = json!({"revision": word.revision, "epoch": word.epoch, "overrules": word.overrules});
    Ok(([(REVISION, HeaderValue::from(word.revision.0))], Json(told)).into_response())
}

/// The log that was looked at is the one that is accepted, and it is a log of this fleet.
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

/// What others would lose, this server cannot tell.
fn not_diverged() -> Failure {
    let detail = "this server follows the log; where another does not, accept there, or tell by \"served\" the digest of \
                  what it serves";
    Failure::new(StatusCode::CONFLICT, "not-diverged", detail)
}
