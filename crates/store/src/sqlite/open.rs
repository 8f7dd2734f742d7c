//! Opening the file: look first, touch later.
//!
//! A damaged file, another program's file or a newer version's file must stay as it is, so the file is inspected
//! through a connection that cannot write before anything is set or migrated.

use std::{
    fs::File,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{
    Connection, SqliteStore, column,
    connections::{Readers, Writer, connect_to_look},
    dsn::{Mode, SqliteDsn},
    log, query, schema,
};
use crate::StoreError;

/// What SQLite keeps in the header of our files: "frs1".
const APPLICATION_ID: i64 = 0x6672_7331;

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
        if fresh {
            create_private(path).map_err(io)?;
        } else {
            inspect(dsn).await?;
        }
        let writer = match dsn.mode {
            Mode::Read => None,
            Mode::ReadWrite | Mode::Create => Some(writer(path, fresh).await?),
        };
        let (readers, past) = (Readers::new(path, writer.is_some()), Readers::new(path, writer.is_some()));
        let place = Place { path: path.to_owned(), inode: inode(path).map_err(io)? };
        Ok(Self { readers, past, writer, place })
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

/// Makes the file, for this user only, whatever the process's umask is. SQLite gives its other files (`-wal`, `-shm`) the
/// permissions of this one. A file that is there already keeps those that somebody gave it.
fn create_private(path: &Path) -> std::io::Result<()> {
    File::options().create(true).append(true).mode(0o600).open(path).map(drop)
}

fn inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Refuses what is not a sound file of ours, without writing to it.
async fn inspect(dsn: &SqliteDsn) -> Result<(), StoreError> {
    let mut connection = connect_to_look(dsn.path())?;
    let id = number(&mut connection, "PRAGMA application_id", "application_id").await?;
    let tables = number(&mut connection, "SELECT count(*) AS tables FROM sqlite_schema", "tables").await?;
    if id != APPLICATION_ID && tables > 0 {
        return Err(StoreError::Foreign("the file is a database of another program".to_owned()));
    }
    if tables > 0 && !schema::is_there(&mut connection).await? {
        return Err(StoreError::Foreign("the file was made by an older version of this program".to_owned()));
    }
    let current = schema::is_current(&mut connection).await?;
    connection.close()?;
    if dsn.mode == Mode::Read && !current {
        return Err(StoreError::Unavailable("its tables wait for a process that may write to be made".to_owned()));
    }
    Ok(())
}

async fn number(connection: &mut Connection, text: &'static str, name: &str) -> Result<i64, StoreError> {
    column(&query(text).fetch_one(connection).await?, name)
}

async fn writer(file: &Path, create: bool) -> Result<Writer, StoreError> {
    let writer = Writer::connect(file, create)?;
    let mut work = writer.take().await?;
    work.connection.run("BEGIN IMMEDIATE")?;
    if !schema::is_current(&mut work.connection).await? {
        // PRAGMA takes no parameters; the number is APPLICATION_ID.
        work.connection.run("PRAGMA application_id = 0x66727331")?;
        schema::migrate(&mut work.connection).await?;
        log::begin(&mut work.connection).await?;
    }
    work.connection.run("COMMIT")?;
    work.done();
    Ok(writer)
}
