//! `GET /{type}/{id}/history`: every change of a document, newest first, with what it said after each.

use axum::{
    Json,
    extract::State,
    http::{Uri, header::LINK},
    response::{IntoResponse as _, Response},
};
use model::Value;
use serde_json::json;
use store::EntryQuery;

use super::{
    Segments,
    changes::{heading, next_page, page},
    document_at, past,
};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

/// Each entry has a whole document.
const MAX_PAGE: u32 = 100;

pub(crate) async fn history(
    _: ReadAccess,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    uri: Uri,
    mut params: Params,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let query = EntryQuery {
        kind: Some(ty.kind.clone()),
        id: Some(id.clone()),
        before: params.revision("before")?,
        limit: page(&mut params, MAX_PAGE)?,
        ..EntryQuery::default()
    };
    params.none_left()?;
    let known = app.snapshot()?.document(ty, &id).is_some();
    let store = past::log(&app)?;
    let entries = store.entries(&query).await.map_err(past::unreadable)?;
    if entries.is_empty() && !known && query.before.is_none() {
        return Err(fleet::EditError::NotFound { kind: ty.kind.clone(), id }.into());
    }
    let next = next_page(&uri, &entries, query.limit)?;
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
    let mut response = Json(history).into_response();
    response.headers_mut().extend(next.map(|link| (LINK, link)));
    Ok(response)
}
