//! Opening the file: look first, touch later.
//!
//! A damaged file, another program's file or a newer version's file must stay as it is, so the file is inspected
//! through a connection that cannot write before anything is set or migrated.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::Notify;

use super::{
    SqliteStore,
    dsn::{Mode, SqliteDsn},
    log, schema,
    writer::Writer,
};
use crate::StoreError;

/// What SQLite keeps in the header of our files: "frs1".
const APPLICATION_ID: i64 = 0x6672_7331;

/// How long a writer waits for another process to finish its commit.
const BUSY: Duration = Duration::from_secs(10);

/// How many rows SQLite may be ahead of who reads them: more than are understood at once, so that its thread neither waits
/// for the reader nor wakes it for every row.
const AHEAD: usize = 256;

impl SqliteStore {
    /// Opens the file and, unless for reading only, brings its tables up to date.
    pub async fn open(dsn: &SqliteDsn) -> Result<Self, StoreError> {
        let path = dsn.path();
        let io = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        if dsn.mode == Mode::Create
            && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let fresh = match std::fs::metadata(path) {
            Ok(file) if file.len() == 0 && dsn.mode != Mode::Create => {
                return Err(StoreError::Unavailable(format!("{}: the file is empty", path.display())));
            }
            Ok(file) => file.len() == 0,
            Err(_) if dsn.mode == Mode::Create => true,
            Err(error) => return Err(io(error)),
        };
        if !fresh {
            inspect(dsn).await?;
        }
        // A statement that takes long is a change of ten thousand documents, and has nothing to tell.
        let options = dsn.options.clone().busy_timeout(BUSY).foreign_keys(true).disable_statement_logging();
        let writer = match dsn.mode {
            Mode::Read => None,
            Mode::ReadWrite | Mode::Create => Some(writer(options.clone()).await?),
        };
        // Readers go through everything once, or look at the end of the log: 512 KiB are plenty.
        let reader = pool(2).connect_with(options.pragma("cache_size", "-512").row_buffer_size(AHEAD)).await?;
        let place = Place { path: path.to_owned(), inode: inode(path).map_err(io)? };
        Ok(Self { reader, writer, place, appended: Notify::new() })
    }
}

/// Where the file is, and which file it is.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    inode: (u64, u64),
}

impl Place {
    /// Fails where another file, or none, is at the path now: what is open here is then nobody's truth any more.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match inode(&self.path) {
            Ok(inode) if inode == self.inode => Ok(()),
            Ok(_) => Err(StoreError::Unavailable(format!("{}: the file was replaced", self.path.display()))),
            Err(error) => Err(StoreError::Unavailable(format!("{}: {error}", self.path.display()))),
        }
    }
}

fn inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_connections(connections).test_before_acquire(false)
}

/// Refuses what is not a sound file of ours, without writing to it.
async fn inspect(dsn: &SqliteDsn) -> Result<(), StoreError> {
    let look = dsn.options.clone().read_only(true).create_if_missing(false).busy_timeout(BUSY);
    let mut connection = look.connect().await?;
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut connection).await?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut connection).await?;
    if id != APPLICATION_ID && tables > 0 {
        return Err(StoreError::Foreign("the file is a database of another program".to_owned()));
    }
    if tables > 0 && !schema::is_there(&mut connection).await? {
        return Err(StoreError::Foreign("the file was made by an older version of this program".to_owned()));
    }
    let current = schema::is_current(&mut connection).await?;
    connection.close().await?;
    if dsn.mode == Mode::Read && !current {
        return Err(StoreError::Unavailable("its tables wait for a process that may write to be made".to_owned()));
    }
    Ok(())
}

async fn writer(options: SqliteConnectOptions) -> Result<Writer, StoreError> {
    // For new files: three documents of a usual cluster fill a page of this size, where only one would fit into half of it.
    let options = options.page_size(8_192);
    let writer = Writer::new(options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full));
    let mut work = writer.take().await?;
    // PRAGMA takes no parameters; the number is APPLICATION_ID.
    sqlx::query("PRAGMA application_id = 0x66727331").execute(&mut work.connection).await?;
    let mut transaction = work.connection.begin_with("BEGIN IMMEDIATE").await?;
    if !schema::is_current(&mut transaction).await? {
        schema::migrate(&mut transaction).await?;
        log::begin(&mut transaction).await?;
    }
    transaction.commit().await?;
    work.done();
    Ok(writer)
}
