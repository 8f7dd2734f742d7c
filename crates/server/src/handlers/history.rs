//! `GET /{type}/{id}/history`: every change of a document, newest first, with the document after each.

use api::HistoryEntry;
use axum::{
    extract::State,
    http::{
        HeaderValue, Uri,
        header::{CONTENT_TYPE, LINK},
    },
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use model::{Change, Id, Kind};
use serde_json::value::RawValue;
use store::ChangeLogQuery;

use super::{
    Segments,
    change::stored_json,
    changes::{json, next_page, page},
    chunks, document_at, past,
};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

/// Each entry has a whole document.
const MAX_PAGE: u32 = 100;

pub(crate) async fn history(
    access: ReadAccess,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    uri: Uri,
    mut params: Params,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let query = ChangeLogQuery {
        kind: Some(ty.kind.clone()),
        id: Some(id.clone()),
        before: params.revision("before")?,
        limit: page(&mut params, MAX_PAGE)?,
        ..ChangeLogQuery::default()
    };
    params.none_left()?;
    let known = access.fleet()?.document(ty, &id).is_some();
    let store = past::log(&access)?.clone();
    let entries = {
        let _permit = app.limits.past.enter().await?;
        store.change_log_entries(&query).await.map_err(past::unreadable)?
    };
    if entries.is_empty() && !known && query.before.is_none() {
        return Err(fleet::EditError::NotFound { kind: ty.kind.clone(), id }.into());
    }
    let next = next_page(&uri, &entries, query.limit)?;
    let of = (access.clone(), ty.kind.clone(), id);
    let items = stream::iter(entries).then(move |entry| {
        let (access, kind, id) = of.clone();
        async move { json(&described(&access, &kind, &id, &entry.change).await?) }
    });
    let body = chunks::body(&app, chunks::array("[".to_owned(), items, "]")).await?;
    let mut response = ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response();
    response.headers_mut().extend(next.map(|link| (LINK, link)));
    Ok(response)
}

/// A change, with the document after it.
async fn described(
    access: &ReadAccess,
    kind: &Kind,
    id: &Id,
    change: &Change,
) -> Result<HistoryEntry<Box<RawValue>>, Failure> {
    let store = past::log(access)?;
    let found = {
        let _permit = access.app().limits.past.go_on().await?;
        store.document_at(kind, id, change.revision).await.map_err(past::unreadable)?
    };
    let op = found.map(|(_, op)| op);
    let body = op.as_ref().map(stored_json).transpose()?.flatten();
    Ok(HistoryEntry { heading: change.into(), op: op.map(|op| op.name().to_owned()), body })
}
