//! The one task that touches the store: it loads the picture and keeps it at the head of the log.
//!
//! What it cannot read, it does not publish. While the store is away the last picture stays; a log that has lost its
//! end is not followed back in time. Both are told: in the log, in `/ready`, and by the age of the picture.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use fleet::{Problem, Snapshot, SnapshotError, Writer};
use model::Registry;
use serde::Serialize;
use store::{MemoryStore, SqliteStore, Store, StoreError, Tail};

use crate::{
    Clock, Log,
    config::Backend,
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

/// How the follower gets on with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreStatus {
    /// Not opened yet.
    Starting,
    /// At the head of the log.
    Following,
    /// The store cannot be read; the picture ages.
    Unavailable,
    /// The log ends before the picture; the picture is kept.
    Behind,
}

/// What others may know of the follower.
#[derive(Debug)]
pub struct Status {
    /// Milliseconds of uptime at which the picture was last known to be at the head.
    synced: AtomicU64,
    store: ArcSwap<StoreStatus>,
    /// A log that lost its end is not to be trusted again when it has grown another.
    lost_end: AtomicBool,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            synced: AtomicU64::new(0),
            store: ArcSwap::from_pointee(StoreStatus::Starting),
            lost_end: AtomicBool::new(false),
        }
    }
}

impl Status {
    /// How long ago the picture was known to be at the head of the log.
    pub(crate) fn age(&self, uptime: Duration) -> Duration {
        uptime.saturating_sub(Duration::from_millis(self.synced.load(Ordering::Relaxed)))
    }

    /// Whether the log ended before the picture once.
    pub(crate) fn has_lost_end(&self) -> bool {
        self.lost_end.load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self) -> StoreStatus {
        **self.store.load()
    }

    /// The picture is at the head; whether this is news.
    fn in_step(&self, uptime: Duration) -> bool {
        self.synced.store(u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.turn(StoreStatus::Following)
    }

    /// Whether this is news.
    fn turn(&self, now: StoreStatus) -> bool {
        *self.store.swap(Arc::new(now)) != now
    }
}

/// What the follower works with.
pub struct Follower {
    /// Where the log is kept.
    pub backend: Backend,
    /// The documents with which a new log begins.
    pub seed: Option<PathBuf>,
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
        let store = tokio::select! {
            store = self.insist(|| async { Ok(self.backend.open().await?) }) => store?,
            () = &mut stop => return Ok(()),
        };
        self.log.opened(store.clone());
        let ended = tokio::select! {
            fatal = self.follow(&*store, writer) => fatal.map(|never| match never {}),
            () = &mut stop => Ok(()),
        };
        store.close().await;
        ended
    }

    async fn follow(&self, store: &dyn Store, mut writer: Writer) -> Result<Infallible, Fatal> {
        if let Some(file) = self.seed.as_ref().filter(|_| self.backend.is_writable()) {
            self.insist(|| async { Ok(seeding::plant(store, &self.registry, file, &*self.clock).await?) }).await?;
        }
        let mut fleet = Snapshot::empty(self.registry.clone());
        let loaded = self.insist(|| self.load(store)).await?;
        self.publish(&mut writer, &mut fleet, loaded);
        self.status.in_step(self.clock.uptime());
        tracing::info!(revision = fleet.revision().0, clusters = fleet.clusters().count(), "the fleet is loaded");
        loop {
            store.wake().await;
            if self.status.has_lost_end() {
                self.status.turn(StoreStatus::Behind);
                continue;
            }
            match store.changes_after(fleet.revision(), BATCH).await {
                // So far behind that the changes are forgotten: the picture itself is still there.
                Err(StoreError::Pruned { .. }) => match self.load(store).await {
                    Ok(loaded) => self.publish(&mut writer, &mut fleet, loaded),
                    Err(error) => self.hold(StoreStatus::Unavailable, &error.to_string()),
                },
                tail => tokio::task::block_in_place(|| self.take(&mut writer, &mut fleet, tail)),
            }
        }
    }

    /// Reads the whole picture.
    async fn load(&self, store: &dyn Store) -> Result<Snapshot, Fatal> {
        let picture = store.load().await?;
        let load = || Snapshot::load(self.registry.clone(), picture.revision, picture.documents);
        Ok(tokio::task::block_in_place(load)?)
    }

    /// Tries until it succeeds, or until trying again cannot help.
    async fn insist<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Fatal>
    where
        F: Future<Output = Result<T, Fatal>>,
    {
        let (mut pause, longest) = RETRY;
        loop {
            match attempt().await {
                Err(Fatal::Store(error)) if error.may_pass() => {
                    self.status.turn(StoreStatus::Unavailable);
                    tracing::warn!(retry.seconds = pause.as_secs_f64(), "the fleet is not loaded: {error}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                done => return done,
            }
        }
    }

    /// Takes the end of the log into the picture, or says why not.
    fn take(&self, writer: &mut Writer, fleet: &mut Snapshot, tail: Result<Tail, StoreError>) {
        let tail = match tail {
            Ok(tail) => tail,
            Err(error) => return self.hold(StoreStatus::Unavailable, &format!("the log cannot be read: {error}")),
        };
        let here = fleet.revision();
        if tail.head < here {
            self.status.lost_end.store(true, Ordering::Relaxed);
            let what = format!("the log ended at revision {}, before the picture at {here}", tail.head);
            return self.hold(StoreStatus::Behind, &what);
        }
        if !tail.changes.is_empty() {
            let next = tail.changes.iter().try_fold(fleet.clone(), |fleet, change| fleet.apply(change));
            match next {
                Ok(next) => self.publish(writer, fleet, next),
                Err(error) => {
                    return self.hold(StoreStatus::Unavailable, &format!("the log cannot be followed: {error}"));
                }
            }
        }
        if fleet.revision() == tail.head && self.status.in_step(self.clock.uptime()) {
            tracing::info!(revision = tail.head.0, "the picture is at the head of the log again");
        }
    }

    /// Keeps the picture as it is; says so once.
    fn hold(&self, status: StoreStatus, what: &str) {
        if self.status.turn(status) {
            tracing::error!("the picture is kept as it is: {what}");
        }
    }

    fn publish(&self, writer: &mut Writer, fleet: &mut Snapshot, next: Snapshot) {
        let known: BTreeSet<&Problem> = fleet.problems().collect();
        for problem in next.problems().filter(|problem| !known.contains(problem)) {
            tracing::warn!(rule = problem.rule.name(), "a document has a problem: {problem}");
        }
        match writer.publish(Arc::new(next.clone())) {
            Ok(()) => {
                *fleet = next;
                self.log.published(fleet.revision());
            }
            Err(error) => self.hold(StoreStatus::Behind, &error.to_string()),
        }
    }
}

impl Backend {
    fn is_writable(&self) -> bool {
        !matches!(self, Self::Sqlite(dsn) if dsn.is_read_only())
    }

    async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::default()),
            Self::Sqlite(dsn) => Arc::new(SqliteStore::open(dsn).await?),
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
