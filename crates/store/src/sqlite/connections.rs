//! The connections to a file: one that writes, at which writers of this process queue instead of at SQLite's lock, and a few
//! that read.
//!
//! A connection on which something failed is thrown away, since a failure such as a full disk leaves it in a state that
//! nobody knows, and the next one who needs it makes another.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex as PlainMutex, MutexGuard as PlainGuard, PoisonError},
    thread,
    time::Duration,
};

use rusqlite::OpenFlags;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::{Connection, aside};
use crate::StoreError;

/// How long a writer waits for another process to finish its commit.
const BUSY: Duration = Duration::from_secs(10);

/// After so many steps of its machine, SQLite looks up from its work: some hundreds of microseconds. A change of one document
/// takes far fewer, so whoever waits for this core is seldom let in while everybody who writes waits for its commit.
const STEPS: i32 = 2_000;

/// How many statements a connection keeps for the next time: all that there are.
const STATEMENTS: usize = 32;

/// How many read at once.
const READERS: usize = 2;

/// Connects to a file for reading and writing; makes it, if that is what is wanted.
fn connect_to_write(file: &Path, create: bool) -> Result<Connection, StoreError> {
    let create = if create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let mut connection = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE | create)?;
    // Whoever waits for this core goes first: a change of a whole fleet keeps it busy for long.
    let go_on = || {
        thread::yield_now();
        false
    };
    connection.progress_handler(STEPS, Some(go_on))?;
    // The size of pages is for new files: three documents of a usual cluster fill one, where only one would fit into half
    // of it. A change writes seven of them, and most are written again by the next changes. So the write-ahead log may have
    // 32 MiB before it is moved into the file, which then takes each of them once.
    let settings = "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 4000;";
    connection.execute_batch(settings)?;
    Ok(Connection::new(connection))
}

/// Connects to a file that is there, and cannot write to it.
pub(super) fn connect_to_look(file: &Path) -> Result<Connection, StoreError> {
    open(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Connection::new)
}

fn open(file: &Path, flags: OpenFlags) -> Result<rusqlite::Connection, StoreError> {
    // It is used by one thread at a time.
    let connection = rusqlite::Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Writer {
    file: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Writer {
    /// Connects to a file, which is made if that is wanted.
    pub(super) fn connect(file: &Path, create: bool) -> Result<Self, StoreError> {
        let connection = Mutex::new(Some(connect_to_write(file, create)?));
        Ok(Self { file: file.to_owned(), connection })
    }

    /// Waits for the connection.
    pub(super) async fn take(&self) -> Result<Work<'_>, StoreError> {
        let mut place = self.connection.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => connect_to_write(&self.file, false)?,
        };
        Ok(Work { connection, place })
    }

    /// Closes the connection. The last one to a file moves its write-ahead log into it.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.connection.lock().await.take().map_or(Ok(()), Connection::close)
    }
}

/// Work that writes. Dropped before it is done, it never was.
pub(super) struct Work<'a> {
    pub(super) connection: Connection,
    place: MutexGuard<'a, Option<Connection>>,
}

impl Work<'_> {
    /// Begins a transaction, with the lock that all writers of the file share.
    pub(super) fn begin(mut self) -> Result<Self, StoreError> {
        aside(|| self.connection.run("BEGIN IMMEDIATE"))?;
        Ok(self)
    }

    /// Ends it.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        aside(|| self.connection.run("COMMIT"))?;
        self.done();
        Ok(())
    }

    /// All went well.
    pub(super) fn done(self) {
        let Self { connection, mut place } = self;
        *place = Some(connection);
    }
}

/// The connections that read.
#[derive(Debug)]
pub(super) struct Readers {
    file: PathBuf,
    /// Whether this process may write to the file: readers take part in keeping its write-ahead log.
    may_write: bool,
    slots: Semaphore,
    idle: PlainMutex<Vec<Connection>>,
}

impl Readers {
    /// Connects when it is first needed.
    pub(super) fn new(file: &Path, may_write: bool) -> Self {
        Self { file: file.to_owned(), may_write, slots: Semaphore::new(READERS), idle: PlainMutex::default() }
    }

    /// Begins to read, all of it as of one moment.
    pub(super) async fn begin(&self) -> Result<Reading<'_>, StoreError> {
        let closed = |_| StoreError::Unavailable("it is closed".to_owned());
        let slot = self.slots.acquire().await.map_err(closed)?;
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.run("BEGIN")?;
        Ok(Reading { connection, readers: self, _slot: slot })
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let flags = if self.may_write { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
        let connection = open(&self.file, flags)?;
        // Readers go through everything once, or look at the end of the log: 512 KiB are plenty.
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

/// Work that reads.
pub(super) struct Reading<'a> {
    pub(super) connection: Connection,
    readers: &'a Readers,
    _slot: SemaphorePermit<'a>,
}

impl Reading<'_> {
    /// Ends it with what was found.
    pub(super) fn end<T>(mut self, found: Result<T, StoreError>) -> Result<T, StoreError> {
        if found.is_ok() {
            self.connection.run("COMMIT")?;
            self.readers.idle().push(self.connection);
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::sqlite::{column, query};

    /// SQLite's own numbers for `synchronous`: 2 is FULL, which waits for the disk at every commit.
    const FULL: i64 = 2;

    async fn settings(work: &mut Work<'_>) -> (i64, String) {
        let synchronous = query("PRAGMA synchronous").fetch_one(&mut work.connection).await.unwrap();
        let journal = query("PRAGMA journal_mode").fetch_one(&mut work.connection).await.unwrap();
        (column(&synchronous, "synchronous").unwrap(), column(&journal, "journal_mode").unwrap())
    }

    #[tokio::test]
    async fn every_connection_that_writes_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::connect(&folder.path().join("log.db"), true).unwrap();
        let durable = (FULL, "wal".to_owned());
        let mut work = writer.take().await.unwrap();
        assert_eq!(settings(&mut work).await, durable, "the first connection");
        // A mark that only this connection has.
        work.connection.run("CREATE TEMP TABLE mark (x)").unwrap();
        // Dropped before it is done, as after a failure: the connection is thrown away.
        drop(work);
        let mut work = writer.take().await.unwrap();
        let marks = query("SELECT count(*) AS marks FROM sqlite_temp_schema").fetch_one(&mut work.connection).await;
        assert_eq!(column::<i64>(&marks.unwrap(), "marks").unwrap(), 0, "it is another connection");
        assert_eq!(settings(&mut work).await, durable, "the one that replaced it");
    }
}
