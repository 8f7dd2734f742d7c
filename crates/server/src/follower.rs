//! Loads the snapshot and keeps it at the head of the change log: with the changes of other processes, and with those of this
//! process that could not be published at once.
//!
//! What it cannot read, it does not publish. While the store is unavailable the served snapshot stays, and a change log that
//! diverged from it is not followed until an operator accepts it. Both are reported by a log line, `/ready` and metrics.

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
    ChangeLog, Clock, SnapshotFileSettings, Status, StoreStatus,
    config::Backend,
    pages,
    seeding::{self, SeedingError},
    serving::{self, Serving},
};

/// How many changes are read at once.
const BATCH: u32 = 1_000;

/// How long to wait before the store is tried again: the first time, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long the store may take to answer before it is reported as unavailable.
const PATIENCE: Duration = Duration::from_secs(2);

/// The actor of changes that record resource types.
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
    /// Something else that a server needs is missing.
    #[error("{0}")]
    Other(String),
    /// The documents cannot be loaded.
    #[error("the documents of the store cannot be loaded: {0}")]
    Snapshot(#[from] SnapshotError),
}

impl Fatal {
    /// Wraps the error of another library.
    pub fn other(error: impl ToString) -> Self {
        Self::Other(error.to_string())
    }
}

/// What the follower needs.
pub struct Follower {
    /// Where the change log is stored.
    pub backend: Backend,
    /// The documents with which a new change log begins.
    pub seed: Option<PathBuf>,
    /// Where the served snapshot is saved for a start without the store.
    pub snapshot_file: Option<SnapshotFileSettings>,
    /// The resource types.
    pub registry: Arc<Registry>,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Whether it records the types that this server adds: one that only reads does not write to the change log.
    pub records_types: bool,
    /// Where the status is published.
    pub status: Arc<Status>,
    /// The change log as the rest of the server sees it.
    pub change_log: Arc<ChangeLog>,
}

impl Follower {
    /// Opens the store, loads the snapshot and follows the change log until `stop` comes. Returns earlier only if it cannot start.
    pub async fn run(self, writer: Writer, stop: impl Future<Output = ()>) -> Result<(), Fatal> {
        let mut stop = pin!(stop);
        let now = self.clock.now();
        let (published, status) = (self.change_log.published(), self.status.clone());
        let recall = || Serving::recall(writer, published, status, self.snapshot_file.as_ref(), &self.registry, now);
        let (mut serving, at_head) = block_in_place(recall).map_err(Fatal::Setting)?;
        if let Some(at_head) = at_head {
            let age = serving::age(at_head, now).try_into().unwrap_or_default();
            self.status.note_at_head(self.clock.uptime(), age);
        }
        let store = tokio::select! {
            store = self.retry(&mut serving, || async { Ok(self.backend.open().await?) }) => store?,
            () = &mut stop => return Ok(()),
        };
        self.change_log.set_store(store.clone());
        let ended = tokio::select! {
            fatal = self.follow(&*store, serving) => fatal.map(|never| match never {}),
            () = &mut stop => Ok(()),
        };
        store.close().await;
        ended
    }

    async fn follow(&self, store: &dyn Store, mut serving: Serving) -> Result<Infallible, Fatal> {
        if serving.point().is_none() {
            // If a fleet was ever served here, the seed does not begin a new one.
            let seed = self.seed.as_ref().filter(|_| self.backend.is_writable() && !serving.knows_a_fleet());
            if let Some(seed) = seed {
                let append_seed =
                    || async { Ok(seeding::seed_if_empty(store, &self.registry, seed, &*self.clock).await?) };
                self.retry(&mut serving, append_seed).await?;
            }
            let loaded = self.retry(&mut serving, || self.load(store)).await?;
            block_in_place(|| serving.replace(loaded, self.clock.now())).map_err(Fatal::Other)?;
            self.confirm_at_head(&mut serving);
        }
        let serving = Arc::new(Mutex::new(serving));
        self.change_log.set_serving(serving.clone());
        let mut limit = BATCH;
        loop {
            let is_done = self.refresh(store, &serving, &mut limit).await;
            self.status.count_refresh();
            if is_done {
                self.record_types(store, &serving).await;
                tokio::select! {
                    () = store.wait_for_append() => {}
                    () = self.change_log.refresh_requested() => {}
                }
            }
        }
    }

    /// Records the types that this server adds to a change log that has changes already. If another process was first, the next
    /// refresh reads its change.
    async fn record_types(&self, store: &dyn Store, serving: &Mutex<Serving>) {
        if !self.records_types || self.status.store() != StoreStatus::Following {
            return;
        }
        let change = {
            let serving = serving.lock().await;
            let Some(fleet) = serving.snapshot().filter(|fleet| fleet.revision() > Revision::ZERO) else { return };
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
                self.change_log.request_refresh();
            }
            Err(AppendError::Conflict { .. }) => self.change_log.request_refresh(),
            Err(AppendError::Store(error)) => tracing::warn!("new resource types are not recorded yet: {error}"),
        }
    }

    /// Brings the snapshot closer to the head of the change log, if the change log continues it. Returns whether there is nothing more to
    /// do. Changes that could not be read at once are read in smaller batches.
    async fn refresh(&self, store: &dyn Store, serving: &Mutex<Serving>, limit: &mut u32) -> bool {
        let Some(here) = serving.lock().await.point().copied() else { return true };
        let mut tail = pin!(store.changes_after(here.revision, *limit));
        let tail = if let Ok(tail) = timeout(PATIENCE, &mut tail).await {
            tail
        } else {
            self.store_unavailable(&mut *serving.lock().await, &"the store does not answer");
            tail.await
        };
        let serving = &mut *serving.lock().await;
        if serving.point() != Some(&here) {
            // A change of this process was published meanwhile, and it was at the head then. The next refresh reads what came after it.
            self.confirm_at_head(serving);
            return true;
        }
        match tail {
            Ok(tail) if tail.continues(&here) => {
                *limit = limit.saturating_mul(2).min(BATCH);
                return block_in_place(|| self.apply(serving, &tail));
            }
            Ok(ChangeBatch { head, .. }) => self.reload_or_diverge(store, serving, &here, head).await,
            // So far behind that the changes since then are pruned.
            Err(StoreError::Pruned { .. }) => match store.bounds().await {
                Ok(ends) => self.reload_or_diverge(store, serving, &here, ends.head).await,
                Err(error) => self.store_unavailable(serving, &error),
            },
            Err(error) => {
                *limit = (*limit / 2).max(1);
                self.store_unavailable(serving, &error);
            }
        }
        true
    }

    /// Applies changes that continue the snapshot. Returns whether they are all that there are.
    fn apply(&self, serving: &mut Serving, tail: &ChangeBatch) -> bool {
        let at_head = tail.changes.last().is_none_or(|last| last.revision == tail.head.revision);
        match serving.follow(&tail.changes, at_head, self.clock.now()) {
            Ok(()) if at_head => self.confirm_at_head(serving),
            Ok(()) => return false,
            Err(reason) => self.store_unavailable(serving, &reason),
        }
        true
    }

    /// Loads a change log whose next changes do not continue the snapshot, if it may be followed; otherwise it has diverged.
    async fn reload_or_diverge(&self, store: &dyn Store, serving: &mut Serving, here: &Point, head: Point) {
        let reload = async {
            if head.store != here.store || !may_follow(store, here).await? {
                return Ok(None);
            }
            let loaded = self.load(store).await?;
            // Checked again, since the change log may have been replaced while it was loaded.
            Ok::<_, Fatal>(may_follow(store, here).await?.then_some(loaded))
        };
        match reload.await {
            Ok(Some(loaded)) if loaded.point().store == here.store => {
                tracing::warn!(point = %loaded.point(), "the served snapshot is replaced by the one of the change log");
                match block_in_place(|| serving.replace(loaded, self.clock.now())) {
                    Ok(()) => self.confirm_at_head(serving),
                    Err(reason) => self.store_unavailable(serving, &reason),
                }
            }
            Ok(_) => {
                if serving.log_diverged(head, self.clock.now()) {
                    let serves = serving.describe();
                    tracing::error!(
                        "the change log diverged from the served snapshot: it is at {head}; {serves}; run `flux-resourceset-cli store`"
                    );
                }
            }
            Err(error) => self.store_unavailable(serving, &error),
        }
    }

    fn confirm_at_head(&self, serving: &mut Serving) {
        match serving.confirm_at_head(self.clock.now()) {
            Ok(()) => self.status.note_at_head(self.clock.uptime(), Duration::ZERO),
            Err(reason) => self.store_unavailable(serving, &reason),
        }
    }

    /// The change log cannot be followed at the moment; logged once.
    fn store_unavailable(&self, serving: &mut Serving, reason: &dyn std::fmt::Display) {
        if serving.store_unavailable(self.clock.now()) {
            let serves = serving.describe();
            tracing::error!("the change log cannot be followed: {reason}; {serves}, and the store is tried again");
        }
    }

    /// Loads the whole snapshot: clusters are parsed while the next ones are read.
    async fn load(&self, store: &dyn Store) -> Result<Snapshot, Fatal> {
        let (to, pieces) = store::document_channel();
        let registry = self.registry.clone();
        let parsed = spawn_blocking(move || {
            let mut count = 0;
            let pieces = pieces.into_iter().inspect(|piece| {
                count += piece.len();
                pages::expect(count);
            });
            Snapshot::load_chunks(registry, pieces)
        });
        let point = store.read_documents(to).await;
        // If parsing failed, its error is the reason for which reading ended, too.
        let fleet = parsed.await.map_err(Fatal::other)??;
        Ok(fleet.at(point?))
    }

    /// Tries until it succeeds, or until trying again cannot help.
    async fn retry<T, F>(&self, serving: &mut Serving, attempt: impl Fn() -> F) -> Result<T, Fatal>
    where
        F: Future<Output = Result<T, Fatal>>,
    {
        let (mut pause, longest) = RETRY;
        loop {
            match attempt().await {
                // While a snapshot can be served, even a damaged store is tried again: an operator may restore it.
                Err(Fatal::Store(error))
                    if error.is_transient() || (matches!(error, StoreError::Corrupt(_)) && serving.can_serve()) =>
                {
                    serving.store_unavailable(self.clock.now());
                    tracing::warn!(retry.seconds = pause.as_secs_f64(), "the fleet is not loaded: {error}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                done => return done,
            }
        }
    }
}

/// Whether a change log may be followed by a server that serves a point: the point is in its past, or an operator has overruled it.
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
