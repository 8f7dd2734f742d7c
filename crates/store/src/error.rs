//! What can go wrong with a store, by what the caller should do.

use model::{Point, Revision};

/// A log that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Out of reach for now: keep the served snapshot and retry.
    #[error("the store cannot be used at the moment: {0}")]
    Unavailable(String),
    /// Damaged: nothing read from it can be trusted.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The requested revision is older than what retention keeps.
    #[error("the log keeps only what came after revision {horizon}")]
    Pruned {
        /// The oldest revision that can still be read.
        horizon: Revision,
    },
    /// Belongs to another program, or to a newer version of this one: do not write to it.
    #[error("the store is not ours to use: {0}")]
    Foreign(String),
}

impl StoreError {
    /// Whether a retry can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
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
    /// The store failed. The change may or may not be in the log: read the log again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A log that was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The store has a log already.
    #[error("the store has a log already, at {head}")]
    NotEmpty {
        /// Its head.
        head: Point,
    },
    /// The archive cannot be used.
    #[error("{0}")]
    Archive(String),
    /// The store failed; its content is unchanged.
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
