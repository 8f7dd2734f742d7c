//! What happened: the log of all changes, append-only and totally ordered. It is the only truth; the fleet is a
//! picture of it.
//!
//! A backend keeps a short promise, the [`Store`] trait, and the promise is a test suite (`tests/contract.rs`) that
//! runs on each of them. A store never guesses: what it cannot read whole it reports as an error, because whoever
//! reads from it decides what clusters delete.

mod error;
mod memory;
pub mod seed;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;
use model::{Change, Document, Revision};

pub use error::{AppendError, StoreError};
pub use memory::MemoryStore;
pub use sqlite::{InvalidDsn, SqliteDsn, SqliteStore};

/// The state of all documents at the head of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The last change in it.
    pub revision: Revision,
    /// All documents and tombstones, ordered by kind and id.
    pub documents: Vec<Document>,
}

/// The end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The newest revision of the log. One that lies *before* what was asked for means that the log lost its end.
    pub head: Revision,
    /// The changes that were asked for, in order and without a gap.
    pub changes: Vec<Change>,
}

/// Keeps the log.
#[async_trait]
pub trait Store: Send + Sync {
    /// The whole picture at the head, from one consistent read.
    async fn load(&self) -> Result<Picture, StoreError>;

    /// Appends a change if it comes directly after the head, durably and whole; else fails with
    /// [`AppendError::Conflict`] and has done nothing. Compare-and-swap: of several writers of one revision, one wins.
    async fn append(&self, change: &Change) -> Result<(), AppendError>;

    /// At most `limit` changes after a revision.
    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<Tail, StoreError>;

    /// Returns when the log may have grown: at once after an append through this store, and otherwise after at most
    /// [`PATIENCE`]. It may return for nothing; it never misses an append that comes after the last return.
    async fn wake(&self);
}

/// The longest time for which an append of another process may go unnoticed.
pub const PATIENCE: Duration = Duration::from_millis(250);
