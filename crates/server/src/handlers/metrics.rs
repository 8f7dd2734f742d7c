//! `GET /metrics`: what Prometheus scrapes. For everyone.
//!
//! Everyone may scrape, and the answer grows with the fleet. So one request at a time gathers the metrics, with a pause after it, for
//! all requests that arrived meanwhile: none is answered with values from before it arrived. A client that is slow to receive the
//! answer is cut off.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use tokio::{
    sync::Mutex,
    task::block_in_place,
    time::{Instant, sleep_until},
};

use super::chunks::Chunks;
use crate::{App, failure::Failure};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Between the end of one gathering and the begin of the next.
const PAUSE: Duration = Duration::from_millis(500);

/// Time for a client to receive the answer: longer than Prometheus waits for one.
const PATIENCE: Duration = Duration::from_secs(30);

/// The last gathering. The request that holds the lock gathers.
#[derive(Default)]
pub(crate) struct Scrapes(Mutex<Option<Scrape>>);

struct Scrape {
    begin: Instant,
    end: Instant,
    text: Bytes,
}

pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    let text = gathered_since(&app, Instant::now()).await?;
    Ok(([(header::CONTENT_TYPE, TEXT)], Chunks::of_text(&text).body_within(PATIENCE, None)).into_response())
}

/// Everything, as it was at a time or later.
async fn gathered_since(app: &App, time: Instant) -> Result<Bytes, Failure> {
    let mut last = app.scrapes.0.lock().await;
    if let Some(last) = &*last {
        if last.begin >= time {
            return Ok(last.text.clone());
        }
        sleep_until(last.end + PAUSE).await;
    }
    let begin = Instant::now();
    let fleet = app.probe_snapshot().ok();
    let age = app.status.age(app.clock.uptime());
    let (store, refreshes) = (app.status.store(), app.status.refreshes());
    let gather = || {
        let fleet = fleet.as_deref().map(|fleet| (fleet, app.problem_counts(fleet)));
        app.metrics.expose(fleet, store, refreshes, age, app.clock.now())
    };
    let text = Bytes::from(block_in_place(gather).map_err(Failure::internal)?);
    *last = Some(Scrape { begin, end: Instant::now(), text: text.clone() });
    Ok(text)
}
