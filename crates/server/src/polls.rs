//! What is known of those who poll: how often each did and when last, and its answers as they were last compressed.
//!
//! The map is lock-free and has an entry for each cluster that is in the fleet, so that no client can make it grow.
//!
//! Flux Operator asks for gzip, and compressing an answer takes several times as long as everything else about a poll. So
//! a compressed answer is kept beside the cluster for as long as what it is made of stays the same. All of them together
//! have a budget. Clusters poll one after another, so that whatever is thrown out to make room is the next to be asked for;
//! nothing is thrown out, and what finds no room is compressed for each poll.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use axum::body::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use fleet::{Cluster, Snapshot, Stamp};
use jiff::Timestamp;
use model::{Id, ResourceType};

/// What all compressed answers may take.
const BUDGET: usize = 2 * 1024 * 1024;

/// Smaller answers are not worth it.
const WORTH: usize = 1024;

/// Those who poll.
pub(crate) struct Polls {
    of_clusters: papaya::HashMap<Id, OfCluster, foldhash::fast::RandomState>,
    types: usize,
    taken: Arc<AtomicUsize>,
}

/// The polls of one cluster, by the type's position.
#[derive(Clone)]
pub(crate) struct OfCluster(Arc<[OfType]>);

struct OfType {
    count: AtomicU64,
    /// When the last one was, in seconds.
    last: AtomicI64,
    zipped: ArcSwapOption<Zipped>,
}

/// A compressed answer, which takes of the budget until it is dropped.
struct Zipped {
    stamp: Stamp,
    body: Bytes,
    taken: Arc<AtomicUsize>,
}

impl Zipped {
    /// How much memory it takes.
    fn takes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

impl Drop for Zipped {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.takes(), Ordering::Relaxed);
    }
}

impl Polls {
    /// Of nobody yet.
    pub(crate) fn new(types: usize) -> Self {
        Self { of_clusters: papaya::HashMap::default(), types, taken: Arc::default() }
    }

    /// What is known of a cluster; if nothing is, it is waited for from now on.
    pub(crate) fn of(&self, cluster: &Cluster, now: Timestamp) -> OfCluster {
        let known = self.of_clusters.pin();
        if let Some(polls) = known.get(cluster.id()) {
            return polls.clone();
        }
        let none = |_| OfType {
            count: AtomicU64::default(),
            last: AtomicI64::new(now.as_second()),
            zipped: ArcSwapOption::default(),
        };
        known.get_or_insert(cluster.id().clone(), OfCluster((0..self.types).map(none).collect())).clone()
    }

    /// Forgets the clusters that are gone: one that is made again under the same id is another one.
    pub(crate) fn keep(&self, fleet: &Snapshot) {
        self.of_clusters.pin().retain(|id, _| fleet.cluster(id).is_some());
    }

    /// An answer as it was compressed when it was made of the same, or as `answer` makes it and it is compressed now. One
    /// that is not worth compressing stays as it is.
    pub(crate) fn zipped<E>(
        &self,
        polls: &OfCluster,
        ty: &ResourceType,
        stamp: Stamp,
        answer: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Sent, E> {
        let Some(OfType { zipped, .. }) = polls.0.get(ty.position) else { return answer().map(Sent::Plain) };
        if let Some(known) = zipped.load().as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Sent::Zipped(known.body.clone()));
        }
        let plain = answer()?;
        let Some(body) = zip(&plain) else { return Ok(Sent::Plain(plain)) };
        let new = Zipped { stamp, body: body.clone(), taken: self.taken.clone() };
        let room = self.taken.fetch_add(new.takes(), Ordering::Relaxed) + new.takes() <= BUDGET;
        zipped.store(room.then(|| Arc::new(new)));
        Ok(Sent::Zipped(body))
    }
}

impl OfCluster {
    /// Counts a poll.
    pub(crate) fn count(&self, ty: &ResourceType, now: Timestamp) {
        if let Some(of_type) = self.0.get(ty.position) {
            of_type.count.fetch_add(1, Ordering::Relaxed);
            of_type.last.store(now.as_second(), Ordering::Relaxed);
        }
    }

    /// How many, by the type's position.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|of_type| of_type.count.load(Ordering::Relaxed))
    }

    /// When the last one was, in seconds.
    pub(crate) fn last(&self) -> i64 {
        self.0.iter().map(|of_type| of_type.last.load(Ordering::Relaxed)).max().unwrap_or_default()
    }

    /// Waits for the next one from now on.
    pub(crate) fn wait(&self, now: Timestamp) {
        self.0.iter().for_each(|of_type| of_type.last.store(now.as_second(), Ordering::Relaxed));
    }
}

/// A body, as it is sent.
pub(crate) enum Sent {
    Plain(Bytes),
    Zipped(Bytes),
}

/// As far back as the compressor looks, in bits: as far as most answers reach.
const WINDOW: u8 = 14;

thread_local! {
    /// To make a compressor and its tables for each answer would be a fifth of a poll.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::fast(), WINDOW));
}

/// Compresses what is worth it. What cannot be compressed is sent as it is.
fn zip(plain: &[u8]) -> Option<Bytes> {
    if plain.len() < WORTH {
        return None;
    }
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.reset();
        // If it needs more, it is not worth it.
        let mut zipped = Vec::with_capacity(plain.len());
        let status = compressor.compress_vec(plain, &mut zipped, FlushCompress::Finish).ok()?;
        // Copied, since what is kept should not take the room of the whole answer.
        (status == Status::StreamEnd).then(|| Bytes::copy_from_slice(&zipped))
    })
}
