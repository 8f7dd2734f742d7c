//! `GET /ready`: polls can be answered, from a picture of this revision and age. For everyone.
//!
//! A server whose store is away, or has another history, stays ready: it answers from the picture that it has, and says
//! how old that is.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{App, failure::Failure};

pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Value>, Failure> {
    let fleet = app.snapshot()?;
    let age = app.status.age(app.clock.uptime());
    let mut ready = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "revision": fleet.revision(),
        "age_seconds": age.as_secs_f64(),
        "store": app.status.store().name(),
    });
    if !fleet.point().epoch.is_first() {
        ready["epoch"] = json!(fleet.point().epoch);
    }
    let unserved: Vec<_> = fleet.unserved_paths().chain(fleet.undeclared_paths()).collect();
    if !unserved.is_empty() {
        ready["types_changed"] = json!(unserved);
    }
    Ok(Json(ready))
}
