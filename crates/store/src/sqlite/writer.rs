//! The one connection that writes: writers of this process queue here instead of at SQLite's lock.
//!
//! It is no pool of one. A pool asks a connection after every use whether it is well, which is as many messages to SQLite's
//! thread as a commit is. Here a connection on which something failed is thrown away, since a failure such as a full disk
//! leaves it in a state that nobody knows, and the next one who writes makes another.

use std::thread;

use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use tokio::sync::{Mutex, MutexGuard};

use super::{Connection, append};
use crate::StoreError;

/// After so many steps of its machine, SQLite looks up from its work: some tens of microseconds.
const STEPS: i32 = 200;

#[derive(Debug)]
pub(super) struct Writer {
    options: SqliteConnectOptions,
    connection: Mutex<Option<Connection>>,
}

impl Writer {
    /// Connects when it is first needed.
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self { options, connection: Mutex::new(None) }
    }

    /// Waits for the connection.
    pub(super) async fn take(&self) -> Result<Work<'_>, StoreError> {
        let mut place = self.connection.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Work { connection, place })
    }

    async fn connect(&self) -> Result<Connection, StoreError> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(append::TRIGGER).execute(&mut connection).await?;
        // Whoever waits for this core goes first: a change of a whole fleet keeps it busy for a second.
        let go_on = || {
            thread::yield_now();
            true
        };
        connection.lock_handle().await?.set_progress_handler(STEPS, go_on);
        Ok(connection)
    }

    /// Closes the connection. The last one to a file moves its write-ahead log into it.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        match self.connection.lock().await.take() {
            Some(connection) => Ok(connection.close().await?),
            None => Ok(()),
        }
    }
}

/// Work that writes. Dropped before it is done, it never was.
pub(super) struct Work<'a> {
    pub(super) connection: Connection,
    place: MutexGuard<'a, Option<Connection>>,
}

impl Work<'_> {
    /// All went well.
    pub(super) fn done(self) {
        let Self { connection, mut place } = self;
        *place = Some(connection);
    }

    /// Ends a transaction.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        sqlx::raw_sql("COMMIT").execute(&mut self.connection).await?;
        self.done();
        Ok(())
    }
}
