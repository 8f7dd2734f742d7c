//! `GET /problems/counts`: how many problems there are, in all and by rule. No text of any is made.

use axum::{Json, extract::State};
use serde_json::{Map, Value, json};

use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn problem_counts(
    _: ReadAccess,
    State(app): State<App>,
    params: Params,
) -> Result<Json<Value>, Failure> {
    params.none_left()?;
    let fleet = app.snapshot()?;
    let counts = app.problem_counts(&fleet);
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let rules: Map<_, _> = counts.iter().map(|(rule, count)| (rule.name().to_owned(), json!(count))).collect();
    Ok(Json(json!({"total": total, "rules": rules})))
}
