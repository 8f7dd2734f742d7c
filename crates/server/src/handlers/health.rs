//! `GET /health`: the process is alive. For everyone.

use axum::Json;
use serde_json::{Value, json};

pub(crate) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}
