//! `GET /{type}/{id}/history`: every change of a document, newest first, with what it said after each.

use axum::{Json, extract::State};
use model::{Revision, Value};
use serde_json::json;
use store::EntryQuery;

use super::{Segments, changes::heading, document_at, past};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

const PAGE: u32 = 100;

pub(crate) async fn history(
    _: ReadAccess,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    mut params: Params,
) -> Result<Json<Vec<Value>>, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let query = EntryQuery {
        kind: Some(ty.kind.clone()),
        id: Some(id.clone()),
        before: params.parsed("before", "a revision")?.map(Revision),
        limit: params.parsed::<u32>("limit", "a number")?.unwrap_or(PAGE).min(PAGE),
        ..EntryQuery::default()
    };
    params.none_left()?;
    let known = app.snapshot()?.document(ty, &id).is_some();
    let store = app.log.store()?;
    let entries = store.entries(&query).await.map_err(past::unreadable)?;
    if entries.is_empty() && !known && query.before.is_none() {
        return Err(fleet::EditError::NotFound { kind: ty.kind.clone(), id }.into());
    }
    let mut history = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut told = heading(&entry.change);
        let found = store.document_at(&ty.kind, &id, entry.change.revision).await.map_err(past::unreadable)?;
        if let Some((_, op)) = found {
            told["op"] = json!(op.name());
            if let Some(body) = op.body() {
                told["body"] = Value::Object(body.fields().map_err(Failure::internal)?);
            }
        }
        history.push(told);
    }
    Ok(Json(history))
}
