//! `GET /ready`: polls can be answered, from a snapshot of this revision and age. For everyone.
//!
//! A server whose store is unavailable, or whose change log diverged, stays ready: it answers from the snapshot that it has, and
//! reports how old that is.

use api::Readiness;
use axum::{Json, extract::State};

use crate::{App, failure::Failure};

pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Readiness>, Failure> {
    let fleet = app.probe_snapshot()?;
    Ok(Json(Readiness {
        status: "ok".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: fleet.revision(),
        epoch: fleet.point().epoch,
        age_seconds: app.status.age(app.clock.uptime()).as_secs_f64(),
        store: app.status.store().into(),
        types_changed: fleet.unserved_paths().chain(fleet.undeclared_paths()).map(str::to_owned).collect(),
    }))
}
