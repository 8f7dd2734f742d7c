//! The connections to a SQLite file: one that writes, for which the writers of this process queue instead of for SQLite's lock,
//! and a few that read.
//!
//! A connection on which something failed is dropped, since a failure such as a full disk leaves it in an unknown state; the
//! next caller opens another.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex as PlainMutex, MutexGuard as PlainGuard, PoisonError},
    thread,
    time::Duration,
};

use rusqlite::OpenFlags;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::Connection;
use crate::{StoreError, chunks::run_blocking};

/// How long a writer waits for another process to finish its commit.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// SQLite calls the progress handler after so many steps of its virtual machine: some hundreds of microseconds. A change of one
/// document takes far fewer, so the writer seldom yields while other writers wait for its commit.
const STEPS_BETWEEN_YIELDS: i32 = 2_000;

/// How many prepared statements a connection caches: more than this module has.
const CACHED_STATEMENTS: usize = 32;

/// How many connections read at once.
const MAX_READERS: usize = 2;

/// Connects to a file for reading and writing; creates the file if `create` is set.
fn connect_to_write(file: &Path, create: bool) -> Result<Connection, StoreError> {
    let create = if create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let mut connection = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE | create)?;
    // A change of a whole fleet takes long, so it yields its core to other threads, which answer polls.
    let yield_core = || {
        thread::yield_now();
        false
    };
    connection.progress_handler(STEPS_BETWEEN_YIELDS, Some(yield_core))?;
    // The page size applies to new files: three documents of a usual cluster fill one page, where only one would fit into a
    // page of half that size. A change writes seven pages, and the next changes write most of them again. So the write-ahead
    // log may have 32 MiB before it is moved into the file, which then takes each page once.
    let settings = "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 4000;";
    connection.execute_batch(settings)?;
    Ok(Connection::new(connection))
}

/// Connects to an existing file, for reading only.
pub(super) fn connect_read_only(file: &Path) -> Result<Connection, StoreError> {
    open(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Connection::new)
}

fn open(file: &Path, flags: OpenFlags) -> Result<rusqlite::Connection, StoreError> {
    // It is used by one thread at a time.
    let connection = rusqlite::Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

/// Lends the one connection that writes.
#[derive(Debug)]
pub(super) struct WriteConnection {
    file: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl WriteConnection {
    /// Connects to a file; creates it if `create` is set.
    pub(super) fn connect(file: &Path, create: bool) -> Result<Self, StoreError> {
        let connection = Mutex::new(Some(connect_to_write(file, create)?));
        Ok(Self { file: file.to_owned(), connection })
    }

    /// Waits for the connection.
    pub(super) async fn lease(&self) -> Result<WriteLease<'_>, StoreError> {
        let mut slot = self.connection.lock().await;
        let connection = match slot.take() {
            Some(connection) => connection,
            None => connect_to_write(&self.file, false)?,
        };
        Ok(WriteLease { connection, slot })
    }

    /// Closes the connection. The last one to a file moves its write-ahead log into it.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.connection.lock().await.take().map_or(Ok(()), Connection::close)
    }
}

/// The connection that writes, lent to one caller. If it is dropped before [`give_back`](Self::give_back), the connection is
/// closed and its transaction rolled back.
pub(super) struct WriteLease<'a> {
    pub(super) connection: Connection,
    slot: MutexGuard<'a, Option<Connection>>,
}

impl WriteLease<'_> {
    /// Begins a transaction, with the lock that all writers of the file share.
    pub(super) fn begin(mut self) -> Result<Self, StoreError> {
        run_blocking(|| self.connection.run("BEGIN IMMEDIATE"))?;
        Ok(self)
    }

    /// Commits the transaction.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        run_blocking(|| self.connection.run("COMMIT"))?;
        self.give_back();
        Ok(())
    }

    /// Returns the connection for the next caller, after a success.
    pub(super) fn give_back(self) {
        let Self { connection, mut slot } = self;
        *slot = Some(connection);
    }
}

/// The connections that read.
#[derive(Debug)]
pub(super) struct ReadConnections {
    file: PathBuf,
    /// Whether this process may write to the file: readers then help to maintain its write-ahead log.
    may_write: bool,
    slots: Semaphore,
    idle: PlainMutex<Vec<Connection>>,
}

impl ReadConnections {
    /// Connections are opened when they are first needed.
    pub(super) fn new(file: &Path, may_write: bool) -> Self {
        Self { file: file.to_owned(), may_write, slots: Semaphore::new(MAX_READERS), idle: PlainMutex::default() }
    }

    /// Begins a transaction that reads one consistent state.
    pub(super) async fn begin(&self) -> Result<ReadTransaction<'_>, StoreError> {
        let closed = |_| StoreError::Unavailable("the store was closed".to_owned());
        let slot = self.slots.acquire().await.map_err(closed)?;
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.run("BEGIN")?;
        Ok(ReadTransaction { connection, pool: self, _slot: slot })
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let flags = if self.may_write { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
        let connection = open(&self.file, flags)?;
        // Readers scan everything once, or read the end of the log: a cache of 512 KiB is enough.
        connection.execute_batch("PRAGMA cache_size = -512")?;
        Ok(Connection::new(connection))
    }

    fn idle(&self) -> PlainGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connections.
    pub(super) fn close(&self) {
        self.slots.close();
        self.idle().clear();
    }
}

/// A transaction that reads.
pub(super) struct ReadTransaction<'a> {
    pub(super) connection: Connection,
    pool: &'a ReadConnections,
    _slot: SemaphorePermit<'a>,
}

impl ReadTransaction<'_> {
    /// Ends the transaction and passes its result on. After an error the connection is closed.
    pub(super) fn end<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if result.is_ok() {
            self.connection.run("COMMIT")?;
            self.pool.idle().push(self.connection);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{column, query};

    /// SQLite's own numbers for `synchronous`: 2 is FULL, which waits for the disk at every commit.
    const FULL: i64 = 2;

    async fn settings(lease: &mut WriteLease<'_>) -> (i64, String) {
        let synchronous = query("PRAGMA synchronous").fetch_one(&mut lease.connection).await.unwrap();
        let journal = query("PRAGMA journal_mode").fetch_one(&mut lease.connection).await.unwrap();
        (column(&synchronous, "synchronous").unwrap(), column(&journal, "journal_mode").unwrap())
    }

    #[tokio::test]
    async fn every_connection_that_writes_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let writer = WriteConnection::connect(&folder.path().join("log.db"), true).unwrap();
        let durable = (FULL, "wal".to_owned());
        let mut lease = writer.lease().await.unwrap();
        assert_eq!(settings(&mut lease).await, durable, "the first connection");
        // A mark that only this connection has.
        lease.connection.run("CREATE TEMP TABLE mark (x)").unwrap();
        // Dropped before it is given back, as after a failure: the connection is closed.
        drop(lease);
        let mut lease = writer.lease().await.unwrap();
        let marks = query("SELECT count(*) AS marks FROM sqlite_temp_schema").fetch_one(&mut lease.connection).await;
        assert_eq!(column::<i64>(&marks.unwrap(), "marks").unwrap(), 0, "it is another connection");
        assert_eq!(settings(&mut lease).await, durable, "the one that replaced it");
    }
}
