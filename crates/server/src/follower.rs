//! The one task that touches the store: it loads the picture and keeps it at the head of the log.
//!
//! What it cannot read, it does not publish. While the store is away the last picture stays, and a log that does not
//! continue what was served is not followed until an operator says so. Both are told: in the log, in `/ready`, and by
//! metrics.

use std::{convert::Infallible, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use fleet::{Snapshot, SnapshotError, Writer};
use model::{Point, Registry};
use store::{MemoryStore, PostgresStore, SqliteStore, Store, StoreError, Tail};
use tokio::task::block_in_place;

use crate::{
    Clock, Keep, Log, Status, StoreStatus,
    config::Backend,
    held::Held,
    seeding::{self, SeedingError},
};

/// How many changes are taken from the log at once.
const BATCH: u32 = 1_000;

/// How long to wait before the store is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

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
    /// What others may know.
    pub status: Arc<Status>,
    /// The hold of others on the log.
    pub log: Arc<Log>,
}

impl Follower {
    /// Opens the store, loads the picture and follows the log until `stop` comes; ends before only if it cannot begin.
    pub async fn run(self, writer: Writer, stop: impl Future<Output = ()>) -> Result<(), Fatal> {
        let mut stop = pin!(stop);
        let mut held = block_in_place(|| Held::recall(writer, self.log.clone(), self.keep.as_ref(), &self.registry));
        if let Some(age) = held.age(self.clock.now()) {
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
            // A fleet that is known is never begun anew.
            if let Some(seed) = self.seed.as_ref().filter(|_| self.backend.is_writable()) {
                let plant = || async { Ok(seeding::plant(store, &self.registry, seed, &*self.clock).await?) };
                self.insist(&mut held, plant).await?;
            }
            let loaded = self.insist(&mut held, || self.load(store)).await?;
            block_in_place(|| held.turn_to(loaded, self.clock.now())).map_err(Fatal::Other)?;
            self.in_step(&mut held);
        }
        loop {
            self.look(store, &mut held).await;
            store.wake().await;
        }
    }

    /// Brings the picture to the head of the log, if that continues it.
    async fn look(&self, store: &dyn Store, held: &mut Held) {
        let Some(here) = held.point().copied() else { return };
        match store.changes_after(here.revision, BATCH).await {
            Ok(tail) if tail.continues(&here) => block_in_place(|| self.take(held, &tail)),
            Ok(Tail { head, .. }) => {
                // An operator has spoken since.
                let accepted = |point: &Point| point.store == here.store && point.epoch > here.epoch;
                self.turn(store, held, head, accepted).await;
            }
            // So far behind that what led here is forgotten. What can be compared is whose log it is, and how far it is; a
            // log that was seen to diverge has not become another by forgetting.
            Err(StoreError::Pruned { .. }) => match store.ends().await {
                Ok(ends) => {
                    let diverged = matches!(self.status.store(), StoreStatus::Diverged(_));
                    let further = |point: &Point| {
                        let newer = point.epoch == here.epoch && point.revision > here.revision && !diverged;
                        point.store == here.store && (point.epoch > here.epoch || newer)
                    };
                    self.turn(store, held, ends.head, further).await;
                }
                Err(error) => self.hold(held, StoreStatus::Unavailable, &error),
            },
            Err(error) => self.hold(held, StoreStatus::Unavailable, &error),
        }
    }

    /// Takes changes that continue the picture.
    fn take(&self, held: &mut Held, tail: &Tail) {
        let at_head = tail.changes.last().is_none_or(|last| last.revision == tail.head.revision);
        match held.follow(&tail.changes, at_head, self.clock.now()) {
            Ok(()) if at_head => self.in_step(held),
            Ok(()) => {}
            Err(what) => self.hold(held, StoreStatus::Unavailable, &what),
        }
    }

    /// Turns to a log that does not continue the picture, where that may be; else keeps the picture.
    async fn turn(&self, store: &dyn Store, held: &mut Held, head: Point, may: impl Fn(&Point) -> bool) {
        if !may(&head) {
            return self.hold(
                held,
                StoreStatus::Diverged(head),
                &format!("the log is at {head}, and does not continue it"),
            );
        }
        match self.load(store).await {
            Ok(loaded) if may(loaded.point()) => {
                tracing::warn!(point = %loaded.point(), "the picture is replaced by that of the log");
                match block_in_place(|| held.turn_to(loaded, self.clock.now())) {
                    Ok(()) => self.in_step(held),
                    Err(what) => self.hold(held, StoreStatus::Unavailable, &what),
                }
            }
            // The next look says more.
            Ok(_) => {}
            Err(error) => self.hold(held, StoreStatus::Unavailable, &error),
        }
    }

    fn in_step(&self, held: &mut Held) {
        held.in_step(self.clock.now());
        if let (true, Some(point)) = (self.status.in_step(self.clock.uptime()), held.point()) {
            tracing::info!(%point, "the picture is at the head of the log");
        }
    }

    /// Keeps the picture as it is; says so once.
    fn hold(&self, held: &mut Held, status: StoreStatus, what: &dyn std::fmt::Display) {
        held.show(self.clock.now());
        if self.status.turn(status) {
            let point = held.point().map(ToString::to_string);
            tracing::error!(point, "the picture is kept as it is: {what}");
        }
    }

    /// Reads the whole picture.
    async fn load(&self, store: &dyn Store) -> Result<Snapshot, Fatal> {
        let picture = store.load().await?;
        Ok(block_in_place(|| Snapshot::load(self.registry.clone(), picture.point, picture.documents))?)
    }

    /// Tries until it succeeds, or until trying again cannot help.
    async fn insist<T, F>(&self, held: &mut Held, attempt: impl Fn() -> F) -> Result<T, Fatal>
    where
        F: Future<Output = Result<T, Fatal>>,
    {
        let (mut pause, longest) = RETRY;
        loop {
            match attempt().await {
                Err(Fatal::Store(error)) if error.may_pass() => {
                    held.show(self.clock.now());
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

impl Backend {
    fn is_writable(&self) -> bool {
        !matches!(self, Self::Sqlite(dsn) if dsn.is_read_only())
    }

    /// Opens the store.
    pub async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::default()),
            Self::Sqlite(dsn) => Arc::new(SqliteStore::open(dsn).await?),
            Self::Postgres { dsn, connections, timeouts } => {
                Arc::new(PostgresStore::open(dsn, *connections, *timeouts).await?)
            }
        })
    }
}

impl From<SeedingError> for Fatal {
    fn from(error: SeedingError) -> Self {
        match error {
            SeedingError::Seed(what) => Self::Setting(what),
            SeedingError::Store(error) => Self::Store(error),
        }
    }
}
