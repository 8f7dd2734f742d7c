//! How many requests of one sort are under way at a time.
//!
//! Polls and single writes of usual size have no limit here: they take microseconds, or queue elsewhere. Everything whose cost grows with the
//! fleet or with the change log has one, so that readers, however many, take a bounded share of memory, of database
//! connections and of the processor. Some requests may wait for a free slot; who would wait too long, or finds too many waiting,
//! is refused with 429 and told when to come back. Nothing was done then.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::block_in_place,
    time::timeout,
};

use crate::failure::Failure;

/// The limits of a server.
pub(crate) struct RequestLimits {
    /// Computing an answer from all documents of the present: lists, problems. One core is left to polls.
    pub(crate) lists: ConcurrencyLimit,
    /// Dry runs that may be about the whole fleet, each of which holds a second snapshot of it and then its plan, until that is
    /// sent.
    pub(crate) plans: ConcurrencyLimit,
    /// Reverts of whole changes, each of which holds all documents that the change wrote.
    pub(crate) reverts: ConcurrencyLimit,
    /// Reading the past from the store: as many at a time as a store has connections for it.
    pub(crate) past: ConcurrencyLimit,
    /// Answers that are too large for one piece, until the client has taken all of them.
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

    /// Waits for a free slot, however long: for the next part of an answer that has begun, of which there are few.
    pub(crate) async fn go_on(&self) -> Result<Permit, Failure> {
        let running = self.running.clone().acquire_owned().await.map_err(Failure::internal)?;
        Ok(Permit { _running: running, _admitted: None })
    }

    /// Computes something, once there is a free slot, where no other request waits for it.
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
    async fn who_finds_too_many_waiting_or_waits_too_long_is_told_when_to_come_back() {
        let limit = ConcurrencyLimit::new("reads", 1, 1, Duration::from_millis(10));
        let first = limit.enter().await.unwrap();
        let refused = async || limit.enter().await.err().unwrap().into_response();
        let (waited, found_a_queue) = tokio::join!(refused(), refused());
        for refused in [waited, found_a_queue] {
            assert_eq!(refused.status(), 429);
            assert_eq!(refused.headers()[RETRY_AFTER], "2");
        }
        drop(first);
        limit.enter().await.unwrap();
    }
}
