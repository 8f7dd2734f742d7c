//! What can go wrong with a store, told apart by what the caller should do.

use model::{Point, Revision};

/// A log that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Out of reach for now: keep the picture, try again.
    #[error("the store cannot be used at the moment: {0}")]
    Unavailable(String),
    /// Damaged: nothing read from it can be trusted.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Asked for a past that the retention has let go.
    #[error("the log keeps only what came after revision {horizon}")]
    Pruned {
        /// The oldest revision of which everything is known.
        horizon: Revision,
    },
    /// Kept by something else, or by a newer version of this program: do not touch it.
    #[error("the store is not ours to use: {0}")]
    Foreign(String),
}

impl StoreError {
    /// Whether trying again can help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// A change that was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The change does not come directly after the head: another writer was first.
    #[error("the log is at {head}")]
    Conflict {
        /// The head of the log.
        head: Point,
    },
    /// The store failed. Whether the change is in the log is for the next read to say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A log that was not put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The store has a log already.
    #[error("the store has a log already, at {head}")]
    NotEmpty {
        /// Its head.
        head: Point,
    },
    /// What should be put back cannot be used.
    #[error("{0}")]
    Archive(String),
    /// The store failed; it is what it was.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for AppendError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<sqlx::Error> for RestoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}
