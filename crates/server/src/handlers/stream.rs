//! `GET /changes/stream`: follows the log, as server-sent events. A client that was away says where it was, by
//! `Last-Event-ID` or `?after=`, and misses nothing.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_core::Stream;
use model::{Change, Digest, FieldError, Revision};
use serde_json::json;
use tokio::sync::watch;

use super::{changes::heading, past};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

/// How many changes are read at once.
const BATCH: u32 = 100;

/// Silence is broken so often, so that nobody takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(crate) async fn stream(
    _: ReadAccess,
    State(app): State<App>,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let after = params.revision("after")?;
    params.none_left()?;
    let last = match headers.get("last-event-id").map(|value| value.to_str().unwrap_or("").parse()) {
        None => None,
        Some(Ok(revision)) => Some(Revision(revision)),
        Some(Err(_)) => {
            let error = FieldError::new("", "header", "Last-Event-ID is a revision");
            return Err(Failure::invalid_query(error));
        }
    };
    let at = last.or(after).unwrap_or(app.snapshot()?.revision());
    if at > app.snapshot()?.revision() {
        return Err(past::unknown(at));
    }
    // What is forgotten cannot be followed, and the client should know before it waits.
    past::log(&app)?.changes_after(at, 1).await.map_err(past::unreadable)?;
    let here = *app.snapshot()?.point();
    let digest = (here.revision == at).then_some(here.digest);
    let tail = Tail { published: app.log.subscribe(), app, at, digest, ready: VecDeque::new() };
    let events = futures_util::stream::unfold(tail, |mut tail| async {
        let change = tail.next().await?;
        Some((Ok(event(&change)), tail))
    });
    let hello = futures_util::stream::once(async { Ok(Event::default().comment("following")) });
    let events = futures_util::StreamExt::chain(hello, events);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Where a client is in the log.
struct Tail {
    app: App,
    published: watch::Receiver<Revision>,
    at: Revision,
    /// What led there, as far as it is known.
    digest: Option<Digest>,
    ready: VecDeque<Change>,
}

impl Tail {
    /// The next change; none where the log cannot be followed from here or the server stops, which ends the stream.
    async fn next(&mut self) -> Option<Change> {
        while self.ready.is_empty() {
            let at = self.at;
            tokio::select! {
                // Back in time is another history.
                published = self.published.wait_for(|published| *published != at) => {
                    if *published.ok()? < at {
                        return None;
                    }
                }
                () = self.app.log.closed() => return None,
            }
            let tail = past::log(&self.app).ok()?.changes_after(at, BATCH).await;
            self.ready =
                tail.inspect_err(|error| tracing::warn!("a stream of changes ends: {error}")).ok()?.changes.into();
            let last = self.ready.back()?;
            if self.digest.is_some_and(|digest| self.ready.front().is_some_and(|first| first.parent != digest)) {
                tracing::warn!("a stream of changes ends: the log is another one");
                return None;
            }
            (self.at, self.digest) = (last.revision, Some(last.digest));
        }
        self.ready.pop_front()
    }
}

fn event(change: &Change) -> Event {
    let mut told = heading(change);
    let writes = change.writes.iter();
    told["writes"] = writes.map(|write| json!({"kind": write.kind, "id": write.id, "op": write.op.name()})).collect();
    Event::default().event("change").id(change.revision.to_string()).data(told.to_string())
}
