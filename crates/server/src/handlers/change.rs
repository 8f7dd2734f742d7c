//! `GET /changes/{revision}`: one change, with every document before and after it.

use axum::{Json, extract::State, http::StatusCode};
use model::{Change, Op, Revision, Value};
use serde_json::json;

use super::{Segments, changes::heading, past};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn change(
    _: ReadAccess,
    State(app): State<App>,
    Segments(revision): Segments<u64>,
    params: Params,
) -> Result<Json<Value>, Failure> {
    params.none_left()?;
    let change = find(&app, Revision(revision)).await?;
    let mut writes = Vec::with_capacity(change.writes.len());
    for write in &change.writes {
        let mut told = json!({"kind": write.kind, "id": write.id, "op": write.op.name()});
        let before = match past::before(&app, write, change.revision).await {
            // The oldest change that is kept has nothing before it any more.
            Err(failure) if failure.status() == StatusCode::GONE => None,
            before => before?,
        };
        for (name, op) in [("before", before.as_ref()), ("after", Some(&write.op))] {
            if let Some(body) = op.and_then(Op::body) {
                told[name] = Value::Object(body.fields().map_err(Failure::internal)?);
            }
        }
        writes.push(told);
    }
    let mut told = heading(&change);
    // What auditors need to check that nothing before it was touched.
    for (name, value) in
        [("epoch", json!(change.epoch)), ("parent", json!(change.parent)), ("digest", json!(change.digest))]
    {
        told[name] = value;
    }
    told["writes"] = Value::Array(writes);
    Ok(Json(told))
}

/// A change of the log.
pub(super) async fn find(app: &App, revision: Revision) -> Result<Change, Failure> {
    app.snapshot()?;
    let earlier = Revision(revision.0.checked_sub(1).ok_or_else(|| past::unknown(revision))?);
    let tail = past::log(app)?.changes_after(earlier, 1).await.map_err(past::unreadable)?;
    tail.changes.into_iter().next().ok_or_else(|| past::unknown(revision))
}
