//! `GET /changes/stream`: follows the change log, as server-sent events. A client that was disconnected continues where it was, by
//! `Last-Event-ID` or `?after=`, and misses nothing.
//!
//! An event has who, when, why, and which documents, of a large change the first of them; never their content. So a stream holds
//! some kilobytes, however slow its client, and there are so many streams and no more.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_core::Stream;
use model::{Digest, FieldError, Revision};
use store::{ChangeLogEntry, ChangeLogQuery, StoreError};
use tokio::sync::{mpsc, watch};
use tracing::Instrument as _;

use super::{
    changes::{json, summary},
    past,
};
use crate::{App, access::ReadAccess, failure::Failure, query::Params, request_limits::Permit};

/// How many changes are read at once.
const BATCH: u32 = 20;

/// How often a comment is sent, so that neither clients nor proxies take an idle connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(crate) async fn stream(
    access: ReadAccess,
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
    let at = last.or(after).unwrap_or(access.fleet()?.revision());
    if at > access.fleet()?.revision() {
        return Err(past::unknown(at));
    }
    let permit = app.limits.streams.enter().await?;
    // Pruned changes cannot be followed, and the client should know before it waits.
    let horizon = past::ends(&access).await?.horizon.revision;
    if at < horizon {
        return Err(past::unreadable(StoreError::Pruned { horizon }));
    }
    let here = *access.fleet()?.point();
    let digest = (here.revision == at).then_some(here.digest);
    let tail =
        Tail { published: app.change_log.subscribe(), access, at, digest, ready: VecDeque::new(), _permit: permit };
    let (to, from) = mpsc::channel(1);
    tokio::spawn(tail.send(to).in_current_span());
    let events = futures_util::stream::unfold(from, |mut from| async {
        let event = from.recv().await?;
        Some((Ok(event), from))
    });
    let hello = futures_util::stream::once(async { Ok(Event::default().comment("following")) });
    let events = futures_util::StreamExt::chain(hello, events);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The position of a client in the change log.
struct Tail {
    access: ReadAccess,
    published: watch::Receiver<Revision>,
    at: Revision,
    /// What led there, as far as it is known.
    digest: Option<Digest>,
    ready: VecDeque<ChangeLogEntry>,
    _permit: Permit,
}

impl Tail {
    /// Sends changes as they come, each once the one before it was taken, until either side ends.
    async fn send(mut self, to: mpsc::Sender<Event>) {
        loop {
            let entry = tokio::select! {
                entry = self.next() => entry,
                // The client has disconnected.
                () = to.closed() => None,
            };
            let Some(entry) = entry else { return };
            match event(entry) {
                Ok(event) => {
                    if to.send(event).await.is_err() {
                        return;
                    }
                }
                Err(failure) => return tracing::warn!("a stream of changes ends: {}", failure.cause()),
            }
        }
    }

    /// The next change; none where the change log cannot be followed from here or the server stops, which ends the stream.
    async fn next(&mut self) -> Option<ChangeLogEntry> {
        while self.ready.is_empty() {
            let at = self.at;
            tokio::select! {
                // A lower revision is another history.
                published = self.published.wait_for(|published| *published != at) => {
                    if *published.ok()? < at {
                        return None;
                    }
                }
                () = self.access.app().change_log.closed() => return None,
            }
            self.ready =
                self.read().await.inspect_err(|what| tracing::warn!("a stream of changes ends: {what}")).ok()?;
        }
        self.ready.pop_front()
    }

    /// The next changes.
    async fn read(&mut self) -> Result<VecDeque<ChangeLogEntry>, String> {
        let store = past::log(&self.access).map_err(|failure| failure.cause().to_owned())?;
        let until = Revision(self.at.0.saturating_add(u64::from(BATCH) + 1));
        let query =
            ChangeLogQuery { after: Some(self.at), before: Some(until), limit: BATCH, ..ChangeLogQuery::default() };
        let permit = self.access.app().limits.past.go_on().await.map_err(|failure| failure.cause().to_owned())?;
        let mut entries = store.change_log_entries(&query).await.map_err(|error| error.to_string())?;
        drop(permit);
        entries.reverse();
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Err("the change log ends before the served snapshot".to_owned());
        };
        if first.change.revision.0 != self.at.0 + 1 {
            return Err(format!("the changes after revision {} were pruned", self.at));
        }
        if self.digest.is_some_and(|digest| first.change.parent != digest) {
            return Err("the change log diverged".to_owned());
        }
        (self.at, self.digest) = (last.change.revision, Some(last.change.digest));
        Ok(entries.into())
    }
}

fn event(entry: ChangeLogEntry) -> Result<Event, Failure> {
    let id = entry.change.revision.to_string();
    Ok(Event::default().event("change").id(id).data(json(&summary(entry))?))
}
