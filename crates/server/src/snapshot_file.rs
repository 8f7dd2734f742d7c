//! The served snapshot, on this server's own disk: what it serves after a start while the store is away, and what it compares
//! the change log with.
//!
//! The file is an [`archive`]: a snapshot, and the changes since. It is written before a snapshot is served, so
//! that a server which starts from it never serves less than it did before. A file that cannot be read whole is not used. Its
//! modification time is when the snapshot was last at the head of the change log. A second file, with the suffix `lock`, is
//! locked, since two servers cannot share a snapshot file; its modification time is when the snapshot was last served.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use fleet::Snapshot;
use jiff::{SignedDuration, Timestamp};
use model::{Change, Registry};
use store::{
    StoredFleet,
    archive::{self, Archive},
};

use crate::pages;

/// How often the times of the files are brought up to date.
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(10);

/// The modification time of a lock file whose snapshot was never served.
const NEVER: SystemTime = SystemTime::UNIX_EPOCH;

/// The changes after the snapshot may take this much more than the snapshot; then the file is written anew.
const SLACK: u64 = 1024 * 1024;

/// A snapshot that was saved before this start.
pub(crate) struct RecalledSnapshot {
    /// The snapshot.
    pub(crate) fleet: Snapshot,
    /// When it was last known to be at the head of the change log.
    pub(crate) at_head: Timestamp,
    /// When it was last served, if that is known.
    pub(crate) served: Option<Timestamp>,
}

/// What a snapshot file has at a start.
pub(crate) enum Recalled {
    /// There was no file: this is a first start.
    Nothing,
    /// A fleet was served here, and its snapshot is gone or cannot be read.
    Lost,
    /// A snapshot.
    Snapshot(Box<RecalledSnapshot>),
}

/// Where the served snapshot is saved.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    lock: File,
    /// Whether the lock file records that a snapshot was saved.
    was_saved: bool,
    /// When the snapshot was last served before this start.
    served: Option<Timestamp>,
    /// When the modification time of the lock file was last set.
    beat: Timestamp,
    /// When the snapshot was last written, or could not be.
    tried: Timestamp,
    /// The file, while its last line is what is served.
    open: Option<OpenFile>,
}

struct OpenFile {
    file: File,
    /// How many more bytes may be appended.
    room: u64,
    /// When its modification time was last set.
    beat: Timestamp,
}

impl SnapshotFile {
    /// Locks the file for this server.
    pub(crate) fn open(path: PathBuf, now: Timestamp) -> Result<Self, String> {
        let lock_path = path.with_added_extension("lock");
        // Read before the file is created: a snapshot that was never served has no time.
        let before = fs::metadata(&lock_path).ok();
        let is_new = before.is_none();
        let served = before.as_ref().and_then(|metadata| metadata.modified().ok()).filter(|time| *time > NEVER);
        let was_saved = before.is_some_and(|metadata| metadata.len() > 0);
        let message = |error: &dyn ToString| format!("SNAPSHOT_FILE {}: {}", path.display(), error.to_string());
        let lock =
            options().create(true).truncate(false).write(true).open(&lock_path).map_err(|error| message(&error))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => message(&"another server uses this file"),
            fs::TryLockError::Error(error) => message(&error),
        })?;
        if is_new {
            // Or the next start would take this one for the time when the snapshot was last served.
            lock.set_modified(NEVER).map_err(|error| message(&error))?;
        }
        let served = served.and_then(|time| Timestamp::try_from(time).ok());
        Ok(Self { path, lock, was_saved, served, beat: now - HEARTBEAT, tried: now, open: None })
    }

    /// Reads what was saved.
    pub(crate) fn recall(&mut self, registry: &Arc<Registry>) -> Recalled {
        match read(&self.path, registry) {
            Ok((fleet, open)) => {
                let (at_head, served) = (open.beat, self.served);
                self.open = Some(open);
                Recalled::Snapshot(Box::new(RecalledSnapshot { fleet, at_head, served }))
            }
            Err(Unusable::Missing) if self.was_saved => {
                tracing::error!(file = %self.path.display(), "the snapshot file is missing, though a snapshot was saved there");
                Recalled::Lost
            }
            Err(Unusable::Missing) => Recalled::Nothing,
            Err(Unusable::Because(what)) => {
                tracing::error!(file = %self.path.display(), "the snapshot file cannot be read and is not used: {what}");
                Recalled::Lost
            }
        }
    }

    /// Saves a snapshot that is about to be served, and that these changes have made of the one before.
    pub(crate) fn save(&mut self, fleet: &Snapshot, changes: &[Change], now: Timestamp) -> Result<(), String> {
        self.tried = now;
        let saved = match self.open.take() {
            Some(open) if open.room > 0 => append(open, changes, now),
            _ => write(&self.path, fleet, now),
        };
        match saved {
            Ok(open) => {
                self.open = Some(open);
                self.record_saved().or_else(|error| self.remove(&error))
            }
            Err(error) => self.remove(&error),
        }
    }

    /// Records in the lock file that a snapshot was saved: if it is missing later, that is not a first start.
    fn record_saved(&mut self) -> io::Result<()> {
        if !self.was_saved {
            self.lock.write_all(b"a fleet was known here\n")?;
            self.lock.sync_all()?;
            self.was_saved = true;
        }
        Ok(())
    }

    /// Saves a snapshot that does not continue the one before.
    pub(crate) fn replace(&mut self, fleet: &Snapshot, now: Timestamp) -> Result<(), String> {
        self.open = None;
        self.save(fleet, &[], now)
    }

    /// The snapshot is served at this time.
    pub(crate) fn note_served(&mut self, now: Timestamp) {
        if is_due(self.beat, now) {
            self.beat = now;
            self.warn_about(self.lock.set_modified(now.into()));
        }
    }

    /// The snapshot is still at the head of the change log. If it could not be saved, that is tried again.
    pub(crate) fn confirm_at_head(&mut self, fleet: &Snapshot, now: Timestamp) -> Result<(), String> {
        let due = is_due(self.open.as_ref().map_or(self.tried, |open| open.beat), now);
        match &mut self.open {
            None if due => self.save(fleet, &[], now),
            Some(open) if due => {
                open.beat = now;
                let result = open.file.set_modified(now.into());
                self.warn_about(result);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn warn_about(&self, result: io::Result<()>) {
        if let Err(error) = result {
            tracing::warn!(file = %self.path.display(), "the snapshot file looks older than it is: its modification time cannot be set: {error}");
        }
    }

    /// Removes a file that could not be written: it would be an older snapshot when it is needed.
    fn remove(&self, error: &io::Error) -> Result<(), String> {
        let path = self.path.display();
        match fs::remove_file(&self.path) {
            Err(stuck) if stuck.kind() != io::ErrorKind::NotFound => {
                Err(format!("SNAPSHOT_FILE {path} can be neither written ({error}) nor removed ({stuck})"))
            }
            _ => {
                tracing::error!("the snapshot is served and not saved: SNAPSHOT_FILE {path}: {error}");
                Ok(())
            }
        }
    }
}

/// Whether a modification time has to be set again. A time in the future has: the clock was set back.
fn is_due(beat: Timestamp, now: Timestamp) -> bool {
    now.duration_since(beat).abs() >= HEARTBEAT
}

/// No other user may read what a fleet is made of.
fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

enum Unusable {
    Missing,
    Because(String),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Because(error.to_string()) }
    }
}

fn read(path: &Path, registry: &Arc<Registry>) -> Result<(Snapshot, OpenFile), Unusable> {
    let because = |error: &dyn ToString| Unusable::Because(error.to_string());
    let file = options().read(true).append(true).open(path)?;
    let at_head = Timestamp::try_from(file.metadata()?.modified()?).map_err(|error| because(&error))?;
    let (stored, changes) = Archive::open(BufReader::new(&file)).map_err(|error| because(&error))?;
    pages::expect(stored.documents.len());
    let mut fleet =
        Snapshot::load(registry.clone(), stored.point, stored.documents).map_err(|error| because(&error))?;
    for change in changes {
        let change = change.map_err(|error| because(&error))?;
        fleet = fleet.apply(&change).map_err(|error| because(&error))?;
    }
    Ok((fleet, OpenFile { file, room: 0, beat: at_head }))
}

/// Writes the whole snapshot to a new file, and renames that.
fn write(path: &Path, fleet: &Snapshot, now: Timestamp) -> io::Result<OpenFile> {
    let new = path.with_added_extension("new");
    let written = write_new(&new, fleet).and_then(|file| {
        fs::rename(&new, path)?;
        sync_folder(path)?;
        Ok(OpenFile { room: file.metadata()?.len() + SLACK, file, beat: now })
    });
    // A file that was only begun wastes space. If it cannot be removed either, the failure to write is reported.
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

fn write_new(new: &Path, fleet: &Snapshot) -> io::Result<File> {
    let file = options().create(true).truncate(true).write(true).open(new)?;
    let mut to = BufWriter::new(&file);
    let stored = StoredFleet { point: *fleet.point(), documents: fleet.all_documents().cloned().collect() };
    archive::write_fleet(&mut to, &stored, *fleet.point())?;
    to.flush()?;
    drop(to);
    file.sync_all()?;
    Ok(file)
}

/// Makes a new name in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn append(mut open: OpenFile, changes: &[Change], now: Timestamp) -> io::Result<OpenFile> {
    let mut lines = Vec::new();
    for change in changes {
        archive::write_change(&mut lines, change)?;
    }
    open.file.write_all(&lines)?;
    open.file.sync_data()?;
    Ok(OpenFile { room: open.room.saturating_sub(lines.len() as u64), beat: now, ..open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_leaves_no_time_in_the_future() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved");
        let [now, ahead, soon] =
            ["2026-01-01T00:00:00Z", "2040-01-01T00:00:00Z", "2026-01-01T00:00:20Z"].map(|text| text.parse().unwrap());
        let mut file = SnapshotFile::open(path, now).unwrap();
        let modified = || fs::metadata(folder.path().join("saved.lock")).unwrap().modified().unwrap();
        for time in [now, ahead, soon] {
            file.note_served(time);
            assert_eq!(Timestamp::try_from(modified()).unwrap(), time);
        }
    }
}
