//! Opens the file: inspects it first, writes later.
//!
//! A damaged file, another program's file or a newer version's file must stay as it is. So the file is inspected through a
//! connection that cannot write, before any setting or migration.

use std::{
    fs::File,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{
    Connection, SqliteStore, column,
    connections::{ReadConnections, WriteConnection, connect_read_only},
    dsn::{OpenMode, SqliteDsn},
    log, query, schema,
};
use crate::StoreError;

/// The application id in the header of our SQLite files: "frs1".
const APPLICATION_ID: i64 = 0x6672_7331;

impl SqliteStore {
    /// Opens the file and, unless for reading only, brings its tables up to date.
    pub async fn open(dsn: &SqliteDsn) -> Result<Self, StoreError> {
        let path = dsn.path();
        let io = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        if dsn.mode == OpenMode::Create
            && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let fresh = match std::fs::metadata(path) {
            Ok(file) if file.len() == 0 && dsn.mode != OpenMode::Create => {
                return Err(StoreError::Unavailable(format!("{}: the file is empty", path.display())));
            }
            Ok(file) => file.len() == 0,
            Err(_) if dsn.mode == OpenMode::Create => true,
            Err(error) => return Err(io(error)),
        };
        if fresh {
            create_private(path).map_err(io)?;
        } else {
            inspect(dsn).await?;
        }
        let writer = match dsn.mode {
            OpenMode::Read => None,
            OpenMode::ReadWrite | OpenMode::Create => Some(open_writer(path, fresh).await?),
        };
        let readers = ReadConnections::new(path, writer.is_some());
        let past_readers = ReadConnections::new(path, writer.is_some());
        let file = OpenedFile { path: path.to_owned(), inode: inode(path).map_err(io)? };
        Ok(Self { readers, past_readers, writer, file })
    }
}

/// The path of the file, and the file that was there when it was opened.
#[derive(Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl OpenedFile {
    /// Fails if another file, or none, is at the path now: other processes then do not see what is written to this one.
    pub(super) fn ensure_not_replaced(&self) -> Result<(), StoreError> {
        match inode(&self.path) {
            Ok(inode) if inode == self.inode => Ok(()),
            Ok(_) => Err(StoreError::Unavailable(format!("{}: the file was replaced", self.path.display()))),
            Err(error) => Err(StoreError::Unavailable(format!("{}: {error}", self.path.display()))),
        }
    }
}

/// Creates the file, for this user only, whatever the process's umask is. SQLite gives its other files (`-wal`, `-shm`) the
/// permissions of this one. An existing file keeps its permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    File::options().create(true).append(true).mode(0o600).open(path).map(drop)
}

fn inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Refuses a file that is damaged or not ours, without writing to it.
async fn inspect(dsn: &SqliteDsn) -> Result<(), StoreError> {
    let mut connection = connect_read_only(dsn.path())?;
    let id = read_number(&mut connection, "PRAGMA application_id", "application_id").await?;
    let tables = read_number(&mut connection, "SELECT count(*) AS tables FROM sqlite_schema", "tables").await?;
    if id != APPLICATION_ID && tables > 0 {
        return Err(StoreError::Foreign("the file is a database of another program".to_owned()));
    }
    if tables > 0 && !schema::exists(&mut connection).await? {
        return Err(StoreError::Foreign("the file was made by an older version of this program".to_owned()));
    }
    let current = schema::is_current(&mut connection).await?;
    connection.close()?;
    if dsn.mode == OpenMode::Read && !current {
        return Err(StoreError::Unavailable("its tables are missing or out of date, and this process may not write: start a server that opens the file with mode=rwc or rw".to_owned()));
    }
    Ok(())
}

async fn read_number(connection: &mut Connection, text: &'static str, name: &str) -> Result<i64, StoreError> {
    column(&query(text).fetch_one(connection).await?, name)
}

async fn open_writer(file: &Path, create: bool) -> Result<WriteConnection, StoreError> {
    let writer = WriteConnection::connect(file, create)?;
    let mut lease = writer.lease().await?;
    lease.connection.run("BEGIN IMMEDIATE")?;
    if !schema::is_current(&mut lease.connection).await? {
        // PRAGMA takes no parameters; the number is APPLICATION_ID.
        lease.connection.run("PRAGMA application_id = 0x66727331")?;
        schema::migrate(&mut lease.connection).await?;
        log::create_log(&mut lease.connection).await?;
    }
    lease.connection.run("COMMIT")?;
    lease.give_back();
    Ok(writer)
}
