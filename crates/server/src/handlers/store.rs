//! `GET /store`: what is served and what the log says. `POST /store/accept`: an operator's word that the log is to be
//! followed, though it does not continue what is served: after a failover to a database that lost its end, or over a
//! backup that was put back.
//!
//! The word is a change of the log, in a new epoch. Every server that holds on to another history sees it and turns.

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use fleet::{Snapshot, difference, plan};
use model::{Change, FieldError, Point, Revision, Value};
use serde_json::json;
use store::AppendError;

use super::past;
use crate::{
    App,
    access::{ReadAccess, WriteAccess},
    failure::Failure,
    query::Params,
    writing,
};

pub(crate) async fn store(_: ReadAccess, State(app): State<App>, params: Params) -> Result<Json<Value>, Failure> {
    params.none_left()?;
    let fleet = app.snapshot()?;
    let head = match app.log.store() {
        Ok(store) => store.ends().await.ok().map(|ends| ends.head),
        Err(_) => None,
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
    let expected = params.revision("expected_revision")?;
    params.none_left()?;
    if expected.is_none() && !dry_run {
        let rule = "the revision of the log, as GET /store and a dry run tell it, is needed";
        return Err(Failure::invalid_query(FieldError::new("/expected_revision", "required", rule)));
    }
    let served = app.snapshot()?;
    let log = app.log.store()?.load().await.map_err(past::unreadable)?;
    let head = log.point;
    expect(expected, &served, &head)?;
    if dry_run {
        let plan = tokio::task::block_in_place(|| {
            let next = Snapshot::load(app.registry.clone(), head, log.documents)?;
            Ok::<_, fleet::SnapshotError>(plan(&served, &next, &difference(&served, &next)))
        });
        let mut plan = plan.map_err(Failure::internal)?;
        // What is agreed to is the log, and not the picture.
        plan.revision = head.revision.0;
        return Ok(Json(plan).into_response());
    }
    let epoch = head.epoch.max(served.point().epoch).next();
    let word = Change::in_epoch(epoch, &head, access.origin(app.clock.now()), Vec::new());
    match app.log.store()?.append(&word).await {
        Ok(()) => {}
        Err(AppendError::Conflict { head }) => return Err(moved(&head)),
        Err(AppendError::Store(error)) => return Err(writing::unavailable().because(error)),
    }
    tracing::warn!(log = %head, served = %served.point(), "an operator has accepted the log");
    writing::turned(&app, epoch).await?;
    Ok(Json(json!({"revision": word.revision, "epoch": epoch})).into_response())
}

/// The log that was looked at is the one that is accepted, and it is a log of this fleet.
fn expect(expected: Option<Revision>, served: &Snapshot, head: &Point) -> Result<(), Failure> {
    if served.point().store != head.store {
        let detail = "the store has the log of another fleet: put a backup back, or the SNAPSHOT_FILE of a server";
        return Err(Failure::new(StatusCode::CONFLICT, "another-log", detail));
    }
    if expected.is_some_and(|expected| expected != head.revision) { Err(moved(head)) } else { Ok(()) }
}

fn moved(head: &Point) -> Failure {
    let detail = format!("the log is at revision {} and not where the request expects it", head.revision);
    Failure::new(StatusCode::PRECONDITION_FAILED, "log-changed", detail)
}
