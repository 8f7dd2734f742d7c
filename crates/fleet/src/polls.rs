//! The polls of a cluster: how many there were and when the last one was, and the last compressed answers.
//!
//! They are stored with the cluster, which a poll reads anyway, and no client can make them grow. Nothing else in a snapshot is
//! mutable.
//!
//! Flux Operator asks for gzip, and compressing an answer takes several times as long as everything else about a poll. So
//! a compressed answer is cached for as long as what it is made of stays the same. All of them together have a budget, which grows
//! with the fleet: enough for the larger answers of every cluster. Clusters poll one after another, so an answer that is
//! evicted to make room would be the next to be polled; none is evicted, and an answer that does not fit is compressed
//! for each poll.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use flate2::{Compress, Compression, FlushCompress, Status};
use model::ResourceType;

use crate::{Answer, Cluster, Empty, Refusal, Snapshot, inputs::Stamp};

/// The memory that all cached answers may take: so much, and so much for each cluster. The answers of 20 components and 40 namespaces
/// take 3 KiB.
const BUDGET: usize = 2 * 1024 * 1024;
const BUDGET_PER_CLUSTER: usize = 7 * 512;

/// The memory that they take.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Smaller answers are not compressed.
const COMPRESSED_FROM: usize = 1024;

/// Smaller answers are compressed for each poll: that takes no longer than the rest of a poll with its connection.
const KEPT_FROM: usize = 4 * 1024;

/// The polls of one cluster, by the type's position.
#[derive(Clone, Debug)]
pub struct Polls(Arc<[OfType]>);

#[derive(Debug, Default)]
struct OfType {
    count: AtomicU64,
    /// When the last one was, or since when the first one is waited for, in seconds; zero, if it is not waited for yet.
    last: AtomicI64,
    zipped: ArcSwapOption<CompressedAnswer>,
}

impl Polls {
    /// None yet.
    pub(crate) fn new(types: usize) -> Self {
        Self((0..types).map(|_| OfType::default()).collect())
    }

    /// Counts a poll, at a time in seconds.
    pub fn count(&self, ty: &ResourceType, now: i64) {
        if let Some(of_type) = self.0.get(ty.position) {
            of_type.count.fetch_add(1, Ordering::Relaxed);
            of_type.last.store(now, Ordering::Relaxed);
        }
    }

    /// How many, by the type's position.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|of_type| of_type.count.load(Ordering::Relaxed))
    }

    /// When the last one was, in seconds. If there was none yet, it is waited for from now on.
    #[must_use]
    pub fn last(&self, now: i64) -> i64 {
        let last = |of_types: &[OfType]| of_types.iter().map(|it| it.last.load(Ordering::Relaxed)).max();
        if last(&self.0).is_none_or(|last| last == 0) {
            self.wait(now);
        }
        last(&self.0).unwrap_or(now)
    }

    /// Waits for the next one from now on.
    pub fn wait(&self, now: i64) {
        self.0.iter().for_each(|of_type| of_type.last.store(now, Ordering::Relaxed));
    }
}

/// A compressed answer, which takes of the budget until it is dropped.
#[derive(Debug)]
struct CompressedAnswer {
    stamp: Stamp,
    body: Box<[u8]>,
}

impl CompressedAnswer {
    fn new(stamp: Stamp, body: Box<[u8]>) -> Self {
        let new = Self { stamp, body };
        TAKEN.fetch_add(new.takes(), Ordering::Relaxed);
        new
    }

    /// How much memory it takes.
    fn takes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

impl Drop for CompressedAnswer {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.takes(), Ordering::Relaxed);
    }
}

/// An answer for a client that accepts gzip.
#[derive(Debug)]
pub enum Packed {
    /// It is too short to be compressed, or compression did not make it shorter.
    Plain(Answer),
    /// Compressed.
    Zipped(Zipped),
}

impl AsRef<[u8]> for Packed {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Plain(answer) => answer.as_ref(),
            Self::Zipped(answer) => answer.as_ref(),
        }
    }
}

/// An answer, compressed with gzip.
#[derive(Debug)]
pub struct Zipped(Arc<CompressedAnswer>);

impl AsRef<[u8]> for Zipped {
    fn as_ref(&self) -> &[u8] {
        &self.0.body
    }
}

impl Snapshot {
    /// All inputs of a type for a cluster, compressed: now, or when they were last made of the same.
    pub fn packed_inputs(&self, cluster: &Cluster, ty: &ResourceType, empty: Empty) -> Result<Packed, Refusal> {
        let Some(OfType { zipped, .. }) = cluster.polls.0.get(ty.position) else {
            return self.inputs(cluster, ty, empty).map(Packed::Plain);
        };
        let stamp = self.stamp(cluster, ty, empty);
        if let Some(known) = zipped.load().as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Packed::Zipped(Zipped(known.clone())));
        }
        let plain = self.inputs(cluster, ty, empty)?;
        let Some(body) = zip(plain.as_ref()) else { return Ok(Packed::Plain(plain)) };
        let new = Arc::new(CompressedAnswer::new(stamp, body));
        let has_room = || TAKEN.load(Ordering::Relaxed) <= BUDGET + BUDGET_PER_CLUSTER * self.cluster_count();
        let is_kept = plain.as_ref().len() >= KEPT_FROM && has_room();
        zipped.store(is_kept.then(|| new.clone()));
        Ok(Packed::Zipped(Zipped(new)))
    }
}

/// As far back as the compressor looks, in bits: as far as most answers reach.
const WINDOW: u8 = 14;

thread_local! {
    /// To make a compressor and its tables for each answer would be a fifth of a poll.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new_gzip(Compression::fast(), WINDOW));
}

/// Compresses an answer; none, if it is short or does not get shorter.
fn zip(plain: &[u8]) -> Option<Box<[u8]>> {
    if plain.len() < COMPRESSED_FROM {
        return None;
    }
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.reset();
        // If it needs more room, it is sent plain.
        let mut zipped = Vec::with_capacity(plain.len());
        let status = compressor.compress_vec(plain, &mut zipped, FlushCompress::Finish).ok()?;
        // Copied, because the buffer has room for the whole plain answer.
        (status == Status::StreamEnd).then(|| zipped.as_slice().into())
    })
}
