//! Changes on their way into the log: thought through one after another, and made durable together.
//!
//! To think a change through needs the picture after the one before it, and to make it durable takes longer than that. So a
//! writer thinks on the picture after all that is on its way, takes its place behind that, and lets the next one think. What
//! is waiting when the store is free goes there at once, all or none. If it is none, whatever waits behind it was thought on a
//! picture that will never be, and all of their writers begin anew.

use std::sync::{Arc, Mutex as PlainMutex, PoisonError};

use fleet::Snapshot;
use futures_util::FutureExt as _;
use model::{Change, Revision};
use store::AppendError;
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::{Log, failure::Failure};

/// How many changes go to the store at once.
const MOST: usize = 64;

/// What writers of this process wait for. Those of other processes are not in it; the store says when they were first.
#[derive(Default)]
pub(crate) struct Queue {
    /// The picture after all that is on its way, if something is. Whoever has it thinks.
    tip: Mutex<Option<Arc<Snapshot>>>,
    waiting: PlainMutex<Vec<Place>>,
    /// Held while something is brought to the store.
    store: Mutex<()>,
}

/// A place in the queue: of a change with the picture after it, or of a writer who only has to know what comes of those
/// before it.
struct Place {
    thought: Option<(Change, Arc<Snapshot>)>,
    told: oneshot::Sender<Result<(), Void>>,
}

/// Why a change was not made, or may not have been.
#[derive(Clone, Debug)]
pub(crate) enum Void {
    /// The picture on which it was thought is not the newest: that is at this revision, and it can be thought again.
    Again(Revision),
    /// It cannot be helped.
    Failed(Failure),
}

/// A turn to think.
pub(crate) struct Turn<'a> {
    log: &'a Arc<Log>,
    tip: MutexGuard<'a, Option<Arc<Snapshot>>>,
}

impl Queue {
    /// Waits for one's turn.
    pub(crate) async fn turn(log: &Arc<Log>) -> Turn<'_> {
        Turn { log, tip: log.queue.tip.lock().await }
    }

    /// The picture has come to a revision: if that is all that was on its way, nothing is kept for it.
    pub(crate) fn settled(&self, revision: Revision) {
        // Whoever thinks at the moment finds out for himself.
        if let Ok(mut tip) = self.tip.try_lock() {
            drop(tip.take_if(|tip| tip.revision() <= revision));
        }
    }

    /// Takes what waits, in its order.
    fn take(&self, most: usize) -> Vec<Place> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let most = most.min(waiting.len());
        waiting.drain(..most).collect()
    }
}

impl Turn<'_> {
    /// The picture after all that is on its way, if that is ahead of this one.
    pub(crate) fn ahead_of(&mut self, newest: &Snapshot) -> Option<Arc<Snapshot>> {
        drop(self.tip.take_if(|tip| tip.revision() <= newest.revision()));
        self.tip.clone()
    }

    /// Ends the turn with a change, and the picture after it; tells what comes of it.
    pub(crate) async fn make(mut self, change: Change, next: Snapshot) -> Result<(), Void> {
        let next = Arc::new(next);
        *self.tip = Some(next.clone());
        self.wait(Some((change, next))).await
    }

    /// Ends the turn without a change; tells what comes of those on which it was thought.
    pub(crate) async fn wait_for_others(self) -> Result<(), Void> {
        self.wait(None).await
    }

    async fn wait(self, thought: Option<(Change, Arc<Snapshot>)>) -> Result<(), Void> {
        let Self { log, tip } = self;
        let (told, tells) = oneshot::channel();
        log.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Place { thought, told });
        drop(tip);
        let mut bringing = Box::pin(bring(log.clone()));
        // What has to wait is a task of its own, since a client that hangs up must not take the changes of others along. A
        // store that is on this machine is done when this returns, and then no other thread has to bring the answer.
        if (&mut bringing).now_or_never().is_none() {
            tokio::spawn(bringing);
        }
        tells.await.unwrap_or_else(|_| Err(Void::Failed(Failure::internal("what was waited for is gone"))))
    }
}

/// Brings to the store what waits for it. Every writer sends somebody; whoever comes first takes all.
async fn bring(log: Arc<Log>) {
    let _one = log.queue.store.lock().await;
    let (mut thoughts, mut writers) = (Vec::new(), Vec::new());
    for Place { thought, told } in log.queue.take(MOST) {
        thoughts.extend(thought);
        writers.push(told);
    }
    let made = append(&log, thoughts).await;
    if made.is_err() {
        // Who was first may be seen in the log, or that the changes were made after all.
        log.look();
        // Nobody thinks meanwhile, so nobody comes to wait behind what is void.
        let mut tip = log.queue.tip.lock().await;
        *tip = None;
        writers.extend(log.queue.take(usize::MAX).into_iter().map(|place| place.told));
    }
    for writer in writers {
        // A writer that has gone does not want to know.
        let _ = writer.send(made.clone());
    }
}

async fn append(log: &Log, thoughts: Vec<(Change, Arc<Snapshot>)>) -> Result<(), Void> {
    let (changes, mut pictures): (Vec<_>, Vec<_>) = thoughts.into_iter().unzip();
    let (Some(first), Some(picture)) = (changes.first(), pictures.pop()) else {
        return Ok(());
    };
    let (parent, before) = (first.parent, Revision(first.revision.0.saturating_sub(1)));
    match log.store().map_err(Void::Failed)?.append_all(&changes).await {
        Ok(()) => {
            log.made(&changes, picture).await;
            Ok(())
        }
        Err(AppendError::Conflict { head }) if head.revision > before => Err(Void::Again(head.revision)),
        // Nobody was first: the database could not tell, and can be asked again.
        Err(AppendError::Conflict { head }) if head.digest == parent => Err(Void::Again(before)),
        Err(AppendError::Conflict { head }) => Err(Void::Failed(Failure::store_diverged(&head))),
        Err(AppendError::Store(error)) => Err(Void::Failed(Failure::store_unavailable().because(error))),
    }
}
