//! `GET /changes/{revision}`: one change, with every document before and after it. A change of the whole fleet is sent in chunks.

use std::borrow::Cow;

use api::{ChangeDetails, WriteDetails, WriteSummary};
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{Stream, StreamExt as _, stream};
use model::{Body, Change, ChangeDigest, Op, Revision};
use serde_json::value::RawValue;
use store::{ChangeLogQuery, StoreError, WriteAndBefore};

use super::{Segments, answers::summary, changes::json, chunks, past};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

/// How many writes are read at once, each with two documents.
const BATCH: usize = 16;

pub(crate) async fn change(
    access: ReadAccess,
    State(app): State<App>,
    Segments(revision): Segments<u64>,
    params: Params,
) -> Result<Response, Failure> {
    params.none_left()?;
    let change = find(&access, Revision(revision)).await?;
    let heading = details(&change)?;
    // The writes are sent one by one, where the heading has an empty list.
    let begin = heading.strip_suffix("]}").ok_or_else(|| Failure::internal("a change has no list of writes"))?;
    let writes = writes(access, &change).map(|write| write.and_then(|write| text(&write)));
    let body = chunks::body(&app, chunks::array(begin.to_owned(), writes, "]}")).await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

/// The JSON of a change without its writes, with what auditors need to check that nothing before it was altered.
fn details(change: &Change) -> Result<String, Failure> {
    let Change { epoch, parent, digest, .. } = *change;
    json(&ChangeDetails::<Box<RawValue>> { heading: change.into(), epoch, parent, digest, writes: Vec::new() })
}

/// The JSON of a write, with the stored text of its documents.
fn text(WriteAndBefore { write, before }: &WriteAndBefore) -> Result<String, Failure> {
    let (before, after) = (before.as_ref().map(stored_json).transpose()?, stored_json(&write.op)?);
    let WriteSummary { kind, id, op } = summary(write);
    json(&WriteDetails { kind, id, op, before: before.flatten(), after })
}

/// The document that a write leaves behind, as stored.
pub(super) fn stored_json(op: &Op) -> Result<Option<Box<RawValue>>, Failure> {
    let text = op.body().map(Body::text).map(Cow::into_owned);
    text.map(RawValue::from_string).transpose().map_err(Failure::internal)
}

/// A change of the change log, without its writes.
pub(super) async fn find(access: &ReadAccess, revision: Revision) -> Result<Change, Failure> {
    access.fleet()?;
    let store = past::log(access)?;
    let earlier = Revision(revision.0.checked_sub(1).ok_or_else(|| past::unknown(revision))?);
    let next = Revision(revision.0.saturating_add(1));
    let query = ChangeLogQuery { after: Some(earlier), before: Some(next), limit: 1, ..ChangeLogQuery::default() };
    let _permit = access.app().limits.past.enter().await?;
    let entries = store.change_log_entries(&query).await.map_err(past::unreadable)?;
    if let Some(entry) = entries.into_iter().next() {
        return Ok(entry.change);
    }
    let horizon = store.bounds().await.map_err(past::unreadable)?.horizon.revision;
    let is_forgotten = revision <= horizon;
    Err(if is_forgotten { past::unreadable(StoreError::Pruned { horizon }) } else { past::unknown(revision) })
}

/// The writes of a change in order, each read when the client has received the ones before. A change that does not agree with its
/// digest fails at its end.
pub(super) fn writes(
    access: ReadAccess,
    change: &Change,
) -> impl Stream<Item = Result<WriteAndBefore, Failure>> + Send + use<> {
    let (revision, expected) = (change.revision, change.digest);
    let begin = Some((0, ChangeDigest::begin(change)));
    let batches = stream::unfold((access, begin), move |(access, rest)| async move {
        let (from, mut digest) = rest?;
        let writes = match batch(&access, revision, from).await {
            Ok(writes) => writes,
            Err(failure) => return Some((vec![Err(failure)], (access, None))),
        };
        for it in &writes {
            digest.add(&it.write);
        }
        let is_last = writes.len() < BATCH;
        let mut items: Vec<_> = writes.into_iter().map(Ok).collect();
        if !is_last {
            return Some((items, (access, Some((from + BATCH, digest)))));
        }
        if digest.finish() != expected {
            let what = format!("change {revision}: its digest does not agree with its content");
            items.push(Err(past::unreadable(StoreError::Corrupt(what))));
        }
        Some((items, (access, None)))
    });
    batches.flat_map(stream::iter)
}

async fn batch(access: &ReadAccess, revision: Revision, from: usize) -> Result<Vec<WriteAndBefore>, Failure> {
    let store = past::log(access)?;
    // An answer that has begun is continued; one too many is refused before it begins.
    let limit = &access.app().limits.past;
    let _permit = if from == 0 { limit.enter().await? } else { limit.go_on().await? };
    store.writes_of_change(revision, from, BATCH).await.map_err(past::unreadable)
}
