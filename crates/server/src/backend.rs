//! Opening the store that the settings name.

use std::sync::Arc;

use store::{MemoryStore, MissingTables, PostgresStore, SqliteStore, Store, StoreError};

use crate::config::Backend;

impl Backend {
    /// Whether changes can be appended to it.
    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self, Self::Sqlite(dsn) if dsn.is_read_only())
    }

    /// Opens the store. Its file or tables are created if they are missing.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::default()),
            Self::Sqlite(dsn) => Arc::new(SqliteStore::open(dsn).await?),
            Self::Postgres { dsn, connections, timeouts } => {
                Arc::new(PostgresStore::open(dsn, *connections, *timeouts, MissingTables::Create).await?)
            }
        })
    }

    /// Opens an existing store for reading.
    pub(crate) async fn open_for_reading(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::default()),
            Self::Sqlite(dsn) => Arc::new(SqliteStore::open(&(**dsn).clone().for_reading()).await?),
            Self::Postgres { dsn, connections, timeouts } => {
                Arc::new(PostgresStore::open(dsn, *connections, *timeouts, MissingTables::Refuse).await?)
            }
        })
    }
}
