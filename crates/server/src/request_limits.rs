//! How many requests of one sort run at the same time.
//!
//! Polls and single writes of usual size have no limit here: they take microseconds, or wait for their turn to be prepared.
//! Every request whose cost grows with the fleet or with the change log has one, so that readers, however many, take a limited
//! share of memory, of database connections and of the processor. Some requests may wait for a free slot; a request that would wait
//! too long, or finds too many waiting, is refused with 429 and `Retry-After`, and changes nothing.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::block_in_place,
    time::timeout,
};

use crate::failure::Failure;

/// The limits of a server.
pub(crate) struct RequestLimits {
    /// Answers that are computed from all documents of the served snapshot: lists, problems. One core is left to polls.
    pub(crate) lists: ConcurrencyLimit,
    /// Dry runs that may change the whole fleet: each has a second snapshot of it in memory and then its plan, until that is sent.
    pub(crate) plans: ConcurrencyLimit,
    /// Reverts of whole changes: each has all documents that the change wrote in memory.
    pub(crate) reverts: ConcurrencyLimit,
    /// Reads of past revisions from the store: as many as a store has connections for them.
    pub(crate) past: ConcurrencyLimit,
    /// Answers that are sent in chunks, until the client has received the last one.
    pub(crate) answers: ConcurrencyLimit,
    /// Requests with a large body, from its second mebibyte to the answer.
    pub(crate) large_bodies: ConcurrencyLimit,
    /// Requests with a body that is not small, from its last byte to the answer.
    pub(crate) bodies: ConcurrencyLimit,
    /// Clients that follow the change log.
    pub(crate) streams: ConcurrencyLimit,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let spare = available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1)).max(1);
        let seconds = Duration::from_secs;
        Self {
            lists: ConcurrencyLimit::new("lists", spare, 64, seconds(10)),
            plans: ConcurrencyLimit::new("dry runs", 1, 16, seconds(30)),
            reverts: ConcurrencyLimit::new("reverts", 1, 4, seconds(30)),
            past: ConcurrencyLimit::new("reads of the past", 2, 32, seconds(5)),
            answers: ConcurrencyLimit::new("large answers", 16, 0, Duration::ZERO),
            large_bodies: ConcurrencyLimit::new("requests with a large body", 2, 16, seconds(10)),
            bodies: ConcurrencyLimit::new("requests with a body of this size", 1, 32, seconds(30)),
            streams: ConcurrencyLimit::new("streams of changes", 32, 0, Duration::ZERO),
        }
    }
}

/// How many requests of one sort run at a time, how many more may wait, and for how long.
pub(crate) struct ConcurrencyLimit {
    what: &'static str,
    running: Arc<Semaphore>,
    /// For those that run and those that wait.
    admitted: Arc<Semaphore>,
    patience: Duration,
}

/// The right to run, until it is dropped.
pub(crate) struct Permit {
    _running: OwnedSemaphorePermit,
    _admitted: Option<OwnedSemaphorePermit>,
}

impl ConcurrencyLimit {
    fn new(what: &'static str, running: usize, waiting: usize, patience: Duration) -> Self {
        let admitted = Arc::new(Semaphore::new(running + waiting));
        Self { what, running: Arc::new(Semaphore::new(running)), admitted, patience }
    }

    /// Waits for a free slot, if not too many wait already.
    pub(crate) async fn enter(&self) -> Result<Permit, Failure> {
        let refuse = || Failure::too_many_requests(self.what);
        let admitted = self.admitted.clone().try_acquire_owned().map_err(|_| refuse())?;
        let running = timeout(self.patience, self.running.clone().acquire_owned()).await;
        let running = running.map_err(|_| refuse())?.map_err(Failure::internal)?;
        Ok(Permit { _running: running, _admitted: Some(admitted) })
    }

    /// Waits for a free slot without a time limit: for the next part of an answer that has begun, of which there are few.
    pub(crate) async fn go_on(&self) -> Result<Permit, Failure> {
        let running = self.running.clone().acquire_owned().await.map_err(Failure::internal)?;
        Ok(Permit { _running: running, _admitted: None })
    }

    /// Computes something once there is a free slot, without blocking other tasks of this thread.
    pub(crate) async fn compute<T>(&self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        let _permit = self.enter().await?;
        Ok(block_in_place(work))
    }
}

#[cfg(test)]
mod tests {
    use axum::{http::header::RETRY_AFTER, response::IntoResponse as _};

    use super::*;

    #[tokio::test]
    async fn a_request_that_waits_too_long_or_finds_a_full_queue_gets_retry_after() {
        let limit = ConcurrencyLimit::new("reads", 1, 1, Duration::from_millis(10));
        let first = limit.enter().await.unwrap();
        let refused = async || limit.enter().await.err().unwrap().into_response();
        let (waited_too_long, queue_was_full) = tokio::join!(refused(), refused());
        for refused in [waited_too_long, queue_was_full] {
            assert_eq!(refused.status(), 429);
            assert_eq!(refused.headers()[RETRY_AFTER], "2");
        }
        drop(first);
        limit.enter().await.unwrap();
    }
}
