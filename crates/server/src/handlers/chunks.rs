//! Answers that may be large: sent in chunks, each of which is written when the client has received the one before it.
//!
//! What fits into one chunk is an ordinary answer. A larger one takes one of the few slots for large answers until the client
//! has received all of it, or until its time is over: then the connection is cut, so that the client sees that the answer is
//! incomplete. An incomplete answer never ends like a complete one.

use std::{io, mem, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody as _, to_bytes},
    response::{IntoResponse as _, Response},
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use tokio::{sync::mpsc, task::yield_now, time::timeout};
use tracing::Instrument as _;

use crate::{
    App,
    failure::Failure,
    request_limits::{Permit, RequestLimits},
};

/// Bytes of a chunk; one document may be larger.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Time for a client to receive a large answer.
const PATIENCE: Duration = Duration::from_mins(2);

/// The body of an answer, of text that comes in parts.
pub(crate) async fn body(
    app: &App,
    parts: impl Stream<Item = Result<String, Failure>> + Send + 'static,
) -> Result<Body, Failure> {
    let mut parts = Box::pin(parts);
    let mut first = String::new();
    while first.len() < CHUNK {
        match parts.next().await {
            Some(part) => first += &part?,
            None => return Ok(first.into()),
        }
    }
    let permit = app.limits.answers.enter().await?;
    let parts = stream::once(async { Ok(first) }).chain(parts).map(|part| part.map(Bytes::from));
    Ok(within(PATIENCE, Some(permit), parts))
}

/// An answer that is in memory completely. A large one takes one of the slots for large answers, as one in parts does.
pub(crate) async fn bounded(limits: &RequestLimits, response: Response) -> Response {
    if response.body().size_hint().exact().is_none_or(|length| length <= CHUNK as u64) {
        return response;
    }
    let permit = match limits.answers.enter().await {
        Ok(permit) => permit,
        Err(refused) => return refused.into_response(),
    };
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(text) => Response::from_parts(parts, Chunks::of_text(&text).body_within(PATIENCE, Some(permit))),
        Err(error) => Failure::internal(error).into_response(),
    }
}

/// Text that is in memory completely, in chunks.
pub(crate) struct Chunks(Vec<Bytes>);

impl Chunks {
    pub(crate) fn of_text(text: &Bytes) -> Self {
        let starts = (0..text.len()).step_by(CHUNK);
        Self(starts.map(|at| text.slice(at..(at + CHUNK).min(text.len()))).collect())
    }

    /// The JSON of a value, written into chunks: one large buffer would be copied whenever it grows.
    pub(crate) fn of_json(value: &impl Serialize) -> serde_json::Result<Self> {
        let mut writer = ChunkWriter { full: Vec::new(), last: Vec::new() };
        serde_json::to_writer(&mut writer, value)?;
        let ChunkWriter { mut full, last } = writer;
        full.push(last.into());
        Ok(Self(full))
    }

    /// A body that a client has to receive within a time; the permit is held until it has. One chunk is an ordinary body.
    pub(crate) fn body_within(self, patience: Duration, permit: Option<Permit>) -> Body {
        match <[Bytes; 1]>::try_from(self.0) {
            Ok([only]) => only.into(),
            Err(chunks) => within(patience, permit, stream::iter(chunks.into_iter().map(Ok))),
        }
    }
}

/// Writes into chunks of memory.
struct ChunkWriter {
    full: Vec<Bytes>,
    last: Vec<u8>,
}

impl io::Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == CHUNK {
            self.full.push(mem::replace(&mut self.last, Vec::with_capacity(CHUNK)).into());
        }
        let taken = bytes.len().min(CHUNK - self.last.len());
        self.last.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a client is sent next.
enum Next {
    Chunk(Bytes),
    /// The last chunk was sent. A channel that ends without this was cut.
    End,
}

/// A body that a client has to receive within a time.
fn within(
    patience: Duration,
    permit: Option<Permit>,
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send + 'static,
) -> Body {
    let (to, from) = mpsc::channel(1);
    // A task counts the time, and not the body: hyper does not poll a body while its client does not read.
    let send = async move {
        let _permit = permit;
        let mut chunks = Box::pin(chunks);
        let send = async {
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    // The client has disconnected.
                    Ok(chunk) => to.send(Next::Chunk(chunk)).await.map_err(|_| None)?,
                    Err(failure) => return Err(Some(failure)),
                }
            }
            to.send(Next::End).await.map_err(|_| None)
        };
        match timeout(patience, send).await {
            Ok(Ok(()) | Err(None)) => {}
            Ok(Err(Some(failure))) => tracing::warn!("a large answer is cut off: {}", failure.cause()),
            Err(_) => {
                tracing::info!(patience.seconds = patience.as_secs(), "a large answer is cut off: its client is slow");
            }
        }
    };
    tokio::spawn(send.in_current_span());
    Body::from_stream(stream::unfold(Some(from), |from: Option<mpsc::Receiver<Next>>| async {
        let mut from = from?;
        // A connection that could send megabytes at once would delay the others of its thread, such as one that writes.
        yield_now().await;
        match from.recv().await {
            Some(Next::Chunk(chunk)) => Some((Ok(chunk), Some(from))),
            Some(Next::End) => None,
            None => Some((Err(io::Error::other("the answer is cut off")), None)),
        }
    }))
}

/// The parts of a JSON array, from those of its items: what begins it, each item with the comma before it, and what ends it.
pub(crate) fn array(
    begin: String,
    items: impl Stream<Item = Result<String, Failure>> + Send + 'static,
    end: &'static str,
) -> impl Stream<Item = Result<String, Failure>> + Send + 'static {
    let items = items.enumerate().map(|(at, item)| item.map(|item| if at == 0 { item } else { format!(",{item}") }));
    let ends = stream::once(async move { Ok(end.to_owned()) });
    stream::once(async { Ok(begin) }).chain(items).chain(ends)
}

/// Parts that are written without waiting, joined to chunks.
pub(crate) fn joined(
    parts: impl Iterator<Item = String> + Send + 'static,
) -> impl Stream<Item = Result<String, Failure>> + Send + 'static {
    let mut parts = parts.fuse();
    stream::iter(std::iter::from_fn(move || {
        let mut chunk = parts.next()?;
        while chunk.len() < CHUNK {
            let Some(part) = parts.next() else { break };
            chunk += &part;
        }
        Some(Ok(chunk))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_chunks_is_the_same_json() {
        for length in [0, 1, CHUNK - 2, CHUNK - 1, 3 * CHUNK] {
            let value = ["x".repeat(length), "y".repeat(length)];
            let Chunks(chunks) = Chunks::of_json(&value).unwrap();
            assert_eq!(chunks.concat(), serde_json::to_vec(&value).unwrap());
            let (last, full) = chunks.split_last().unwrap();
            assert!(full.iter().all(|chunk| chunk.len() == CHUNK) && last.len() <= CHUNK, "{length}");
        }
    }
}
