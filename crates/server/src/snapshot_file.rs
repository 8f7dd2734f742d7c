//! The last picture, on this server's own disk: what it serves when it starts while the store is away, and by what it
//! knows a log that is not the one it followed.
//!
//! The file is an [`archive`]: a picture, and the changes since. It is written before a picture is served, so
//! that a server which starts from it never serves less than it did before. What does not read whole is not used. Its time
//! is when the picture was last at the head of the log. A second file beside it is locked, since two servers with one
//! memory have none; its time is when the picture was last served.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
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

/// The changes after the picture may take this much, and as much as the picture; then the file is written anew.
const SLACK: u64 = 1024 * 1024;

/// A picture that was kept.
pub(crate) struct Kept {
    /// The picture.
    pub(crate) fleet: Snapshot,
    /// When it was last known to be at the head of the log.
    pub(crate) at_head: Timestamp,
    /// When it was last served, if that is known.
    pub(crate) served: Option<Timestamp>,
}

/// What there is to remember.
pub(crate) enum Memory {
    /// There was no file.
    None,
    /// There is a file that is not to be relied on: a fleet was known here, and is forgotten.
    Lost,
    /// A picture.
    Kept(Box<Kept>),
}

/// Where the last picture is kept.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    lock: File,
    /// Whether the lock says that a picture was kept.
    knew: bool,
    /// When the picture was last served before this start.
    served: Option<Timestamp>,
    /// When the lock was last told that it still is.
    beat: Timestamp,
    /// When the picture was last written, or could not be.
    tried: Timestamp,
    /// The file, while its last line is what is served.
    open: Option<Open>,
}

struct Open {
    file: File,
    /// How much more may be appended.
    room: u64,
    /// When it was last told that it is at the head of the log.
    beat: Timestamp,
}

impl SnapshotFile {
    /// Takes hold of the file, as the only one.
    pub(crate) fn open(path: PathBuf, now: Timestamp) -> Result<Self, String> {
        let beside = path.with_added_extension("lock");
        // Before it is touched: a file that nobody has served has no time.
        let before = fs::metadata(&beside).ok();
        let served = before.as_ref().and_then(|about| about.modified().ok());
        let knew = before.is_some_and(|about| about.len() > 0);
        let told = |error: &dyn ToString| format!("SNAPSHOT_FILE {}: {}", path.display(), error.to_string());
        let lock = options().create(true).truncate(false).write(true).open(&beside).map_err(|error| told(&error))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => told(&"another server keeps its picture there"),
            fs::TryLockError::Error(error) => told(&error),
        })?;
        let served = served.and_then(|time| Timestamp::try_from(time).ok());
        Ok(Self { path, lock, knew, served, beat: now - HEARTBEAT, tried: now, open: None })
    }

    /// Reads what was kept.
    pub(crate) fn recall(&mut self, registry: &Arc<Registry>) -> Memory {
        match read(&self.path, registry) {
            Ok((fleet, open)) => {
                let (at_head, served) = (open.beat, self.served);
                self.open = Some(open);
                Memory::Kept(Box::new(Kept { fleet, at_head, served }))
            }
            Err(Unusable::Missing) if self.knew => {
                tracing::error!(file = %self.path.display(), "a picture was kept, and is not there any more");
                Memory::Lost
            }
            Err(Unusable::Missing) => Memory::None,
            Err(Unusable::Because(what)) => {
                tracing::error!(file = %self.path.display(), "the kept picture is not used: {what}");
                Memory::Lost
            }
        }
    }

    /// Keeps a picture that is about to be served, and which these changes made of the one before.
    pub(crate) fn keep(&mut self, fleet: &Snapshot, changes: &[Change], now: Timestamp) -> Result<(), String> {
        self.tried = now;
        let kept = match self.open.take() {
            Some(open) if open.room > 0 => append(open, changes, now),
            _ => write(&self.path, fleet, now),
        };
        match kept {
            Ok(open) => {
                self.open = Some(open);
                self.remember().or_else(|error| self.forget(&error))
            }
            Err(error) => self.forget(&error),
        }
    }

    /// Says in the lock that a picture was kept: where it is gone later, that is not a first start.
    fn remember(&mut self) -> io::Result<()> {
        if !self.knew {
            self.lock.write_all(b"a fleet was known here\n")?;
            self.lock.sync_all()?;
            self.knew = true;
        }
        Ok(())
    }

    /// Keeps a picture of another history.
    pub(crate) fn replace(&mut self, fleet: &Snapshot, now: Timestamp) -> Result<(), String> {
        self.open = None;
        self.keep(fleet, &[], now)
    }

    /// The picture is served.
    pub(crate) fn served(&mut self, now: Timestamp) {
        if is_due(self.beat, now) {
            self.beat = now;
            self.told(self.lock.set_modified(now.into()));
        }
    }

    /// The picture is still at the head of the log. One that could not be kept is tried again.
    pub(crate) fn at_head(&mut self, fleet: &Snapshot, now: Timestamp) -> Result<(), String> {
        let due = is_due(self.open.as_ref().map_or(self.tried, |open| open.beat), now);
        match &mut self.open {
            None if due => self.keep(fleet, &[], now),
            Some(open) if due => {
                open.beat = now;
                let beaten = open.file.set_modified(now.into());
                self.told(beaten);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn told(&self, beaten: io::Result<()>) {
        if let Err(error) = beaten {
            tracing::warn!(file = %self.path.display(), "the kept picture looks older than it is: {error}");
        }
    }

    /// What could not be written must not be there: it would be an older picture when it is needed.
    fn forget(&self, error: &io::Error) -> Result<(), String> {
        let path = self.path.display();
        match fs::remove_file(&self.path) {
            Err(stuck) if stuck.kind() != io::ErrorKind::NotFound => {
                Err(format!("SNAPSHOT_FILE {path} can be neither written ({error}) nor removed ({stuck})"))
            }
            _ => {
                tracing::error!("the picture is served and not kept: SNAPSHOT_FILE {path}: {error}");
                Ok(())
            }
        }
    }
}

/// Whether a time is to be brought up to date. One that is yet to come is: the clock was set back.
fn is_due(beat: Timestamp, now: Timestamp) -> bool {
    now.duration_since(beat).abs() >= HEARTBEAT
}

/// Nobody else needs to read what a fleet is made of.
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

fn read(path: &Path, registry: &Arc<Registry>) -> Result<(Snapshot, Open), Unusable> {
    let because = |error: &dyn ToString| Unusable::Because(error.to_string());
    let file = options().read(true).append(true).open(path)?;
    let at_head = Timestamp::try_from(file.metadata()?.modified()?).map_err(|error| because(&error))?;
    let (picture, changes) = Archive::open(BufReader::new(&file)).map_err(|error| because(&error))?;
    pages::expect(picture.documents.len());
    let mut fleet =
        Snapshot::load(registry.clone(), picture.point, picture.documents).map_err(|error| because(&error))?;
    for change in changes {
        let change = change.map_err(|error| because(&error))?;
        fleet = fleet.apply(&change).map_err(|error| because(&error))?;
    }
    Ok((fleet, Open { file, room: 0, beat: at_head }))
}

/// Writes the whole picture beside the file, and puts it in its place.
fn write(path: &Path, fleet: &Snapshot, now: Timestamp) -> io::Result<Open> {
    let new = path.with_added_extension("new");
    let written = write_new(&new, fleet).and_then(|file| {
        fs::rename(&new, path)?;
        sync_folder(path)?;
        Ok(Open { room: file.metadata()?.len() + SLACK, file, beat: now })
    });
    // What is only begun takes room for nothing; where it cannot be removed either, that is said of the file itself.
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

fn write_new(new: &Path, fleet: &Snapshot) -> io::Result<File> {
    let file = options().create(true).truncate(true).write(true).open(new)?;
    let mut to = BufWriter::new(&file);
    let picture = StoredFleet { point: *fleet.point(), documents: fleet.all_documents().cloned().collect() };
    archive::write_fleet(&mut to, &picture, *fleet.point())?;
    to.flush()?;
    drop(to);
    file.sync_all()?;
    Ok(file)
}

/// Makes a new name in a folder last.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn append(mut open: Open, changes: &[Change], now: Timestamp) -> io::Result<Open> {
    let mut lines = Vec::new();
    for change in changes {
        archive::write_change(&mut lines, change)?;
    }
    open.file.write_all(&lines)?;
    open.file.sync_data()?;
    Ok(Open { room: open.room.saturating_sub(lines.len() as u64), beat: now, ..open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_leaves_no_time_that_is_yet_to_come() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let [now, ahead, soon] =
            ["2026-01-01T00:00:00Z", "2040-01-01T00:00:00Z", "2026-01-01T00:00:20Z"].map(|text| text.parse().unwrap());
        let mut file = SnapshotFile::open(path, now).unwrap();
        let told = || fs::metadata(folder.path().join("kept.lock")).unwrap().modified().unwrap();
        for time in [now, ahead, soon] {
            file.served(time);
            assert_eq!(Timestamp::try_from(told()).unwrap(), time);
        }
    }
}
