//! Group commit: changes of this process are prepared one after another, and appended to the change log together.
//!
//! A change is prepared on the snapshot after the change before it, and appending takes longer than preparing. So a writer
//! prepares its change on the pending head, the snapshot after all changes that are not appended yet, queues it, and lets the
//! next writer prepare. When the store is free, all queued changes are appended by one compare-and-swap, all or none. If none is,
//! every change that was prepared on them is superseded too, and all their writers prepare again.

use std::sync::{Arc, Mutex as PlainMutex, PoisonError};

use fleet::Snapshot;
use futures_util::FutureExt as _;
use model::{Change, Revision};
use store::AppendError;
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::{ChangeLog, failure::Failure};

/// How many changes are appended at once.
const MAX_GROUP: usize = 64;

/// The writers of this process. Those of other processes are noticed by the store's compare-and-swap.
#[derive(Default)]
pub(crate) struct GroupCommit {
    /// The snapshot after all queued changes, if there are any. The writer that holds the lock prepares its change.
    pending_head: Mutex<Option<Arc<Snapshot>>>,
    queue: PlainMutex<Vec<QueuedWriter>>,
    /// Locked while changes are appended.
    appending: Mutex<()>,
}

/// A writer that waits for the next append: with its change and the snapshot after it, or only for the outcome of the changes
/// before it.
struct QueuedWriter {
    prepared: Option<(Change, Arc<Snapshot>)>,
    outcome: oneshot::Sender<Result<(), CommitError>>,
}

/// Why a change was not appended, or may not have been.
#[derive(Clone, Debug)]
pub(crate) enum CommitError {
    /// Another change was appended first: the head is at this revision now, and the change can be prepared again.
    Superseded(Revision),
    /// Trying again does not help.
    Failed(Failure),
}

/// The right to prepare the next change.
pub(crate) struct PrepareTurn<'a> {
    log: &'a Arc<ChangeLog>,
    pending_head: MutexGuard<'a, Option<Arc<Snapshot>>>,
}

impl GroupCommit {
    /// Waits until this writer may prepare its change.
    pub(crate) async fn turn(log: &Arc<ChangeLog>) -> PrepareTurn<'_> {
        PrepareTurn { log, pending_head: log.group_commit.pending_head.lock().await }
    }

    /// The snapshot of a revision is served: a pending head up to it is needed no longer.
    pub(crate) fn published(&self, revision: Revision) {
        // A writer that is preparing right now does the same when it begins.
        if let Ok(mut head) = self.pending_head.try_lock() {
            drop(head.take_if(|head| head.revision() <= revision));
        }
    }

    /// Takes the first queued writers, in their order.
    fn take(&self, most: usize) -> Vec<QueuedWriter> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let most = most.min(queue.len());
        queue.drain(..most).collect()
    }
}

impl PrepareTurn<'_> {
    /// The pending head, if it is newer than the served snapshot. A pending head of another history, which an operator has overruled
    /// since, is dropped: its revisions stand for other changes.
    pub(crate) fn pending_head(&mut self, served: &Snapshot) -> Option<Arc<Snapshot>> {
        let here = served.point();
        let is_obsolete = |head: &mut Arc<Snapshot>| {
            let there = head.point();
            there.revision <= here.revision || (there.store, there.epoch) != (here.store, here.epoch)
        };
        drop(self.pending_head.take_if(is_obsolete));
        self.pending_head.clone()
    }

    /// Queues a change with the snapshot after it, and waits until it is appended.
    pub(crate) async fn commit(mut self, change: Change, next: Snapshot) -> Result<(), CommitError> {
        let next = Arc::new(next);
        *self.pending_head = Some(next.clone());
        self.wait(Some((change, next))).await
    }

    /// Waits until the changes up to the pending head are appended.
    pub(crate) async fn wait_for_pending(self) -> Result<(), CommitError> {
        self.wait(None).await
    }

    async fn wait(self, prepared: Option<(Change, Arc<Snapshot>)>) -> Result<(), CommitError> {
        let Self { log, pending_head } = self;
        let (outcome, waiting) = oneshot::channel();
        let writer = QueuedWriter { prepared, outcome };
        log.group_commit.queue.lock().unwrap_or_else(PoisonError::into_inner).push(writer);
        drop(pending_head);
        let mut flush = Box::pin(flush(log.clone()));
        // SQLite appends on this thread, and the first poll is then the last. An append that has to wait becomes a task of its
        // own: a client that disconnects must not abort the changes of others.
        if (&mut flush).now_or_never().is_none() {
            tokio::spawn(flush);
        }
        let lost = || Err(CommitError::Failed(Failure::internal("the append of a group of changes has no outcome")));
        waiting.await.unwrap_or_else(|_| lost())
    }
}

/// Appends the queued changes. Every writer calls it; the first one that gets the lock takes all.
async fn flush(log: Arc<ChangeLog>) {
    let _one = log.group_commit.appending.lock().await;
    let (mut prepared, mut outcomes) = (Vec::new(), Vec::new());
    for writer in log.group_commit.take(MAX_GROUP) {
        prepared.extend(writer.prepared);
        outcomes.push(writer.outcome);
    }
    let result = append(&log, prepared).await;
    if result.is_err() {
        // The change log shows who was first, or that the changes were appended after all.
        log.request_refresh();
        // While the lock is held, no writer can queue behind changes that are superseded.
        let mut pending_head = log.group_commit.pending_head.lock().await;
        *pending_head = None;
        outcomes.extend(log.group_commit.take(usize::MAX).into_iter().map(|writer| writer.outcome));
    }
    for outcome in outcomes {
        // The client of a writer may have disconnected.
        let _ = outcome.send(result.clone());
    }
}

async fn append(log: &ChangeLog, prepared: Vec<(Change, Arc<Snapshot>)>) -> Result<(), CommitError> {
    let (changes, mut snapshots): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    let (Some(first), Some(snapshot)) = (changes.first(), snapshots.pop()) else {
        return Ok(());
    };
    let (parent, before) = (first.parent, Revision(first.revision.0.saturating_sub(1)));
    match log.store().map_err(CommitError::Failed)?.append_all(&changes).await {
        Ok(()) => {
            log.publish_own(&changes, snapshot).await;
            Ok(())
        }
        Err(AppendError::Conflict { head }) if head.revision > before => Err(CommitError::Superseded(head.revision)),
        // No other change was first: the database could not decide, and can be asked again.
        Err(AppendError::Conflict { head }) if head.digest == parent => Err(CommitError::Superseded(before)),
        Err(AppendError::Conflict { head }) => Err(CommitError::Failed(Failure::store_diverged(&head))),
        Err(AppendError::Store(error)) => Err(CommitError::Failed(Failure::store_unavailable().because(error))),
    }
}

#[cfg(test)]
mod tests {
    use model::{Epoch, Point, Registry};

    use super::*;

    #[tokio::test]
    async fn a_pending_head_of_an_overruled_history_is_dropped() {
        let registry = Arc::new(Registry::built_in().unwrap());
        let snapshot = |revision, epoch| {
            let point = Point { revision: Revision(revision), epoch: Epoch(epoch), ..Point::default() };
            Snapshot::load(registry.clone(), point, []).unwrap()
        };
        let log = Arc::new(ChangeLog::default());
        let pending = async |head: Snapshot, served: Snapshot| {
            let mut turn = GroupCommit::turn(&log).await;
            *turn.pending_head = Some(Arc::new(head));
            turn.pending_head(&served).map(|head| head.revision())
        };
        assert_eq!(pending(snapshot(5, 0), snapshot(4, 0)).await, Some(Revision(5)));
        assert_eq!(pending(snapshot(5, 0), snapshot(5, 0)).await, None, "it is served");
        assert_eq!(pending(snapshot(79, 0), snapshot(3, 1)).await, None, "another history was accepted");
    }
}
