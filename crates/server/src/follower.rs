//! Loads the picture, and keeps it at the head of the log: at what other processes write, and at what this one wrote where
//! whoever did could not publish it.
//!
//! What it cannot read, it does not publish. While the store is away the last picture stays, and a log that does not
//! continue what was served is not followed until an operator says so. Both are told: in the log, in `/ready`, and by
//! metrics.

use std::{convert::Infallible, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use fleet::{Snapshot, SnapshotError, Writer};
use model::{Change, Origin, Point, Registry, Revision};
use store::{AppendError, ChangeBatch, Store, StoreError};
use tokio::{
    sync::Mutex,
    task::{block_in_place, spawn_blocking},
    time::timeout,
};

use crate::{
    Clock, Keep, Log, Status, StoreStatus,
    config::Backend,
    held::Held,
    pages,
    seeding::{self, SeedingError},
};

/// How many changes are taken from the log at once.
const BATCH: u32 = 1_000;

/// How long to wait before the store is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long the store may be silent before that is told.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who records resource types.
const TYPES_ACTOR: &str = "resource-types";

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// A setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// The store must not be used.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Something else that a server needs is not to be had.
    #[error("{0}")]
    Other(String),
    /// The documents make no picture.
    #[error("the store does not make a picture: {0}")]
    Snapshot(#[from] SnapshotError),
}

impl Fatal {
    /// Wraps what another library has to say.
    pub fn other(error: impl ToString) -> Self {
        Self::Other(error.to_string())
    }
}

/// What the follower works with.
pub struct Follower {
    /// Where the log is kept.
    pub backend: Backend,
    /// The documents with which a new log begins.
    pub seed: Option<PathBuf>,
    /// Where the last picture is kept for a start without the store.
    pub keep: Option<Keep>,
    /// The resource types.
    pub registry: Arc<Registry>,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Whether it records the types that this server adds: one that only reads does not write to the change log.
    pub records_types: bool,
    /// What others may know.
    pub status: Arc<Status>,
    /// The hold of others on the log.
    pub log: Arc<Log>,
}

impl Follower {
    /// Opens the store, loads the picture and follows the log until `stop` comes; ends before only if it cannot begin.
    pub async fn run(self, writer: Writer, stop: impl Future<Output = ()>) -> Result<(), Fatal> {
        let mut stop = pin!(stop);
        let now = self.clock.now();
        let recall = || Held::recall(writer, self.log.published(), self.keep.as_ref(), &self.registry, now);
        let mut held = block_in_place(recall).map_err(Fatal::Setting)?;
        if let Some(age) = held.age(now) {
            self.status.was_in_step(self.clock.uptime(), age.try_into().unwrap_or_default());
        }
        let store = tokio::select! {
            store = self.insist(&mut held, || async { Ok(self.backend.open().await?) }) => store?,
            () = &mut stop => return Ok(()),
        };
        self.log.opened(store.clone());
        let ended = tokio::select! {
            fatal = self.follow(&*store, held) => fatal.map(|never| match never {}),
            () = &mut stop => Ok(()),
        };
        store.close().await;
        ended
    }

    async fn follow(&self, store: &dyn Store, mut held: Held) -> Result<Infallible, Fatal> {
        if held.point().is_none() {
            // A fleet that is known, or was, is never begun anew.
            let seed = self.seed.as_ref().filter(|_| self.backend.is_writable() && !held.knows_a_fleet());
            if let Some(seed) = seed {
                let plant = || async { Ok(seeding::plant(store, &self.registry, seed, &*self.clock).await?) };
                self.insist(&mut held, plant).await?;
            }
            let loaded = self.insist(&mut held, || self.load(store)).await?;
            block_in_place(|| held.turn_to(loaded, self.clock.now())).map_err(Fatal::Other)?;
            self.at_head(&mut held);
        }
        let held = Arc::new(Mutex::new(held));
        self.log.follows(held.clone());
        let mut limit = BATCH;
        loop {
            let is_done = self.look(store, &held, &mut limit).await;
            self.status.refreshed();
            if is_done {
                self.record_types(store, &held).await;
                tokio::select! {
                    () = store.wait_for_append() => {}
                    () = self.log.news() => {}
                }
            }
        }
    }

    /// Records the types that this server adds to a change log that has changes already. If another process was first, the next
    /// look at the change log shows it.
    async fn record_types(&self, store: &dyn Store, held: &Mutex<Held>) {
        if !self.records_types || self.status.store() != StoreStatus::Following {
            return;
        }
        let change = {
            let held = held.lock().await;
            let Some(fleet) = held.fleet().filter(|fleet| fleet.revision() > Revision::ZERO) else { return };
            let writes = fleet.unrecorded_types();
            if writes.is_empty() {
                return;
            }
            let reason = Some("types that are new to this change log are recorded".to_owned());
            let origin = Origin { at: self.clock.now(), actor: TYPES_ACTOR.to_owned(), reason, request_id: None };
            Change::after(fleet.point(), origin, writes)
        };
        let kinds: Vec<_> = change.writes.iter().map(|write| write.id.as_str()).collect();
        match store.append(&change).await {
            Ok(()) => {
                tracing::info!(
                    revision = change.revision.0,
                    types = kinds.join(", "),
                    "new resource types are recorded"
                );
                self.log.look();
            }
            Err(AppendError::Conflict { .. }) => self.log.look(),
            Err(AppendError::Store(error)) => tracing::warn!("new resource types are not recorded yet: {error}"),
        }
    }

    /// Brings the picture closer to the head of the log, if that continues it; whether there is nothing more to do. What
    /// could not be read at once is read in smaller pieces.
    async fn look(&self, store: &dyn Store, held: &Mutex<Held>, limit: &mut u32) -> bool {
        let Some(here) = held.lock().await.point().copied() else { return true };
        let mut tail = pin!(store.changes_after(here.revision, *limit));
        let tail = if let Ok(tail) = timeout(PATIENCE, &mut tail).await {
            tail
        } else {
            self.hold(&mut *held.lock().await, StoreStatus::Unavailable, &"it does not answer");
            tail.await
        };
        let held = &mut *held.lock().await;
        if held.point() != Some(&here) {
            // A change of this process, which was directly after the head. What others do after it is seen by the next look.
            self.at_head(held);
            return true;
        }
        match tail {
            Ok(tail) if tail.continues(&here) => {
                *limit = limit.saturating_mul(2).min(BATCH);
                return block_in_place(|| self.take(held, &tail));
            }
            Ok(ChangeBatch { head, .. }) => self.turn(store, held, &here, head).await,
            // So far behind that the changes since are forgotten.
            Err(StoreError::Pruned { .. }) => match store.bounds().await {
                Ok(ends) => self.turn(store, held, &here, ends.head).await,
                Err(error) => self.hold(held, StoreStatus::Unavailable, &error),
            },
            Err(error) => {
                *limit = (*limit / 2).max(1);
                self.hold(held, StoreStatus::Unavailable, &error);
            }
        }
        true
    }

    /// Takes changes that continue the picture; whether they are all that there are.
    fn take(&self, held: &mut Held, tail: &ChangeBatch) -> bool {
        let at_head = tail.changes.last().is_none_or(|last| last.revision == tail.head.revision);
        match held.follow(&tail.changes, at_head, self.clock.now()) {
            Ok(()) if at_head => self.at_head(held),
            Ok(()) => return false,
            Err(what) => self.hold(held, StoreStatus::Unavailable, &what),
        }
        true
    }

    /// Turns to the picture of a log whose next changes do not continue this one, where that may be; else keeps it.
    async fn turn(&self, store: &dyn Store, held: &mut Held, here: &Point, head: Point) {
        let turned = async {
            if head.store != here.store || !may_follow(store, here).await? {
                return Ok(None);
            }
            let loaded = self.load(store).await?;
            // Asked once more: it is the log that was loaded.
            Ok::<_, Fatal>(may_follow(store, here).await?.then_some(loaded))
        };
        match turned.await {
            Ok(Some(loaded)) if loaded.point().store == here.store => {
                tracing::warn!(point = %loaded.point(), "the picture is replaced by that of the log");
                match block_in_place(|| held.turn_to(loaded, self.clock.now())) {
                    Ok(()) => self.at_head(held),
                    Err(what) => self.hold(held, StoreStatus::Unavailable, &what),
                }
            }
            Ok(_) => {
                let what = format!("the log is at {head}, and does not continue it");
                self.hold(held, StoreStatus::Diverged(head), &what);
            }
            Err(error) => self.hold(held, StoreStatus::Unavailable, &error),
        }
    }

    fn at_head(&self, held: &mut Held) {
        if let Err(what) = held.at_head(self.clock.now()) {
            return self.hold(held, StoreStatus::Unavailable, &what);
        }
        if let (true, Some(point)) = (self.status.in_step(self.clock.uptime()), held.point()) {
            tracing::info!(%point, "the picture is at the head of the log");
        }
    }

    /// Keeps the picture as it is; says so once.
    fn hold(&self, held: &mut Held, status: StoreStatus, what: &dyn std::fmt::Display) {
        let log = if let StoreStatus::Diverged(head) = &status { Some(head) } else { None };
        held.show(log, self.clock.now());
        if self.status.turn(status) {
            let point = held.point().map(ToString::to_string);
            tracing::error!(point, "the picture is kept as it is: {what}");
        }
    }

    /// Reads the whole picture: clusters are understood while the next ones are read.
    async fn load(&self, store: &dyn Store) -> Result<Snapshot, Fatal> {
        let (to, pieces) = store::document_channel();
        let registry = self.registry.clone();
        let understood = spawn_blocking(move || {
            let mut count = 0;
            let pieces = pieces.into_iter().inspect(|piece| {
                count += piece.len();
                pages::expect(count);
            });
            Snapshot::load_pieces(registry, pieces)
        });
        let point = store.read_documents(to).await;
        // If nobody took what was read, this says why.
        let fleet = understood.await.map_err(Fatal::other)??;
        Ok(fleet.at(point?))
    }

    /// Tries until it succeeds, or until trying again cannot help.
    async fn insist<T, F>(&self, held: &mut Held, attempt: impl Fn() -> F) -> Result<T, Fatal>
    where
        F: Future<Output = Result<T, Fatal>>,
    {
        let (mut pause, longest) = RETRY;
        loop {
            match attempt().await {
                // Where something good can be served, even damage is waited for: somebody may put the store back.
                Err(Fatal::Store(error))
                    if error.is_transient() || (matches!(error, StoreError::Corrupt(_)) && held.is_fit()) =>
                {
                    held.show(None, self.clock.now());
                    self.status.turn(StoreStatus::Unavailable);
                    tracing::warn!(retry.seconds = pause.as_secs_f64(), "the fleet is not loaded: {error}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                done => return done,
            }
        }
    }
}

/// Whether a log may be followed by who is at a point: that is in its past, or an operator has overruled it.
async fn may_follow(store: &dyn Store, here: &Point) -> Result<bool, StoreError> {
    Ok(store.digest_at(here.revision).await? == Some(here.digest) || store.is_overruled(&here.digest).await?)
}

impl From<SeedingError> for Fatal {
    fn from(error: SeedingError) -> Self {
        match error {
            SeedingError::Seed(what) => Self::Setting(what),
            SeedingError::Store(error) => Self::Store(error),
        }
    }
}
