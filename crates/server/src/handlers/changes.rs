//! `GET /changes`: the audit trail, newest first, filtered and in pages.

use api::{ChangeSummary, WriteSummary};
use axum::{
    extract::State,
    http::{
        HeaderValue, Uri,
        header::{CONTENT_TYPE, LINK},
    },
    response::{IntoResponse as _, Response},
};
use fleet::Snapshot;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use model::{Excerpt, FieldError, Id, Kind};
use serde::Serialize;
use store::{ChangeLogEntry, ChangeLogQuery};

use super::{chunks, past};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

const PAGE: u32 = 100;
const MAX_PAGE: u32 = 1_000;

/// Takes the size of a page, and reduces it to the maximum.
pub(super) fn page(params: &mut Params, most: u32) -> Result<u32, Failure> {
    let asked = params.count("limit")?.map_or(PAGE, |count| u32::try_from(count).unwrap_or(most));
    Ok(asked.min(most))
}

pub(crate) async fn changes(
    access: ReadAccess,
    State(app): State<App>,
    uri: Uri,
    mut params: Params,
) -> Result<Response, Failure> {
    let time = "a time, such as 2026-01-31T12:00:00Z";
    let fleet = access.fleet()?;
    let query = ChangeLogQuery {
        kind: kind(&fleet, params.one("kind")?)?,
        id: params.parsed::<Id>("id", "an id")?,
        actor: params.one("actor")?,
        since: params.parsed::<Timestamp>("since", time)?,
        until: params.parsed::<Timestamp>("until", time)?,
        before: params.revision("before")?,
        limit: page(&mut params, MAX_PAGE)?,
        after: None,
    };
    params.none_left()?;
    let store = past::log(&access)?;
    let entries = {
        let _permit = app.limits.past.enter().await?;
        store.change_log_entries(&query).await.map_err(past::unreadable)?
    };
    let next = next_page(&uri, &entries, query.limit)?;
    let items = stream::iter(entries).map(|entry| json(&summary(entry)));
    let body = chunks::body(&app, chunks::array("[".to_owned(), items, "]")).await?;
    let mut response = ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response();
    response.headers_mut().extend(next.map(|link| (LINK, link)));
    Ok(response)
}

/// Where the next page is, if this one is full: the same query, before the last of these.
pub(super) fn next_page(uri: &Uri, entries: &[ChangeLogEntry], limit: u32) -> Result<Option<HeaderValue>, Failure> {
    let Some(last) = entries.last().filter(|_| u32::try_from(entries.len()) == Ok(limit)) else { return Ok(None) };
    let filters = uri.query().unwrap_or_default().split('&');
    let filters =
        filters.filter(|pair| !pair.is_empty() && !pair.starts_with("before=") && !pair.starts_with("limit="));
    let filters: String = filters.flat_map(|pair| [pair, "&"]).collect();
    let next = format!("<{}?{filters}before={}&limit={limit}>; rel=\"next\"", uri.path(), last.change.revision);
    HeaderValue::try_from(next).map(Some).map_err(Failure::internal)
}

/// A kind, by any of its names. A kind that no type declares any more is found too. One that was never known is an error: an empty
/// answer to a misspelt name would be read as "there is none".
pub(super) fn kind(fleet: &Snapshot, name: Option<String>) -> Result<Option<Kind>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let kind = fleet.registry().by_name(&name).map_or_else(|| name.as_str().into(), |ty| ty.kind.clone());
    if fleet.knows_kind(&kind) {
        return Ok(Some(kind));
    }
    let known: Vec<_> = fleet.registry().types().map(|ty| ty.kind.as_str()).collect();
    let message =
        format!("\"kind\" is \"{}\", and there is no such kind; kinds are {}", Excerpt(name), known.join(", "));
    Err(Failure::invalid_query(FieldError::new("/kind", "query", message)))
}

/// A change in a list or an event: of a large one only the first documents, and how many there are.
pub(super) fn summary(ChangeLogEntry { change, writes, total }: ChangeLogEntry) -> ChangeSummary {
    let total = Some(total).filter(|total| *total > writes.len());
    let writes = writes.into_iter().map(|(kind, id, op)| WriteSummary { kind, id, op }).collect();
    ChangeSummary { heading: (&change).into(), writes, total }
}

/// The JSON of one item of an answer that is sent in chunks.
pub(super) fn json(item: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(item).map_err(Failure::internal)
}
