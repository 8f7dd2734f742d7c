//! `GET /health`: the process is alive. For everyone.

use api::Health;
use axum::Json;

pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}
