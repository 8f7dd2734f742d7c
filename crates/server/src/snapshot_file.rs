//! The last picture, on this replica's own disk: what it serves when it starts while the store is away.
//!
//! The file is an [archive](store::archive): a picture, and the changes since. It is written before a picture is served, so
//! that a replica which starts from it never serves less than it did before. What does not read whole is not used.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet::Snapshot;
use jiff::{SignedDuration, Timestamp};
use model::{Change, Registry};
use store::{
    Picture,
    archive::{self, Archive},
};

/// How often the file is told that its picture is still at the head of the log.
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(10);

/// The changes after the picture may take this much, and as much as the picture; then the file is written anew.
const SLACK: u64 = 1024 * 1024;

/// A picture that was kept.
pub(crate) struct Kept {
    /// The picture.
    pub(crate) fleet: Snapshot,
    /// When it was last known to be at the head of the log.
    pub(crate) at: Timestamp,
}

/// Where the last picture is kept.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    /// The file, while its last line is what is served.
    open: Option<Open>,
}

struct Open {
    file: File,
    /// How much more may be appended.
    room: u64,
    beat: Timestamp,
}

impl SnapshotFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    /// Reads what was kept; none where there is nothing, or nothing to rely on.
    pub(crate) fn recall(&mut self, registry: &Arc<Registry>) -> Option<Kept> {
        match read(&self.path, registry) {
            Ok((kept, open)) => {
                self.open = Some(open);
                Some(kept)
            }
            Err(Unusable::Missing) => None,
            Err(Unusable::Because(what)) => {
                tracing::warn!(file = %self.path.display(), "the kept picture is not used: {what}");
                None
            }
        }
    }

    /// Keeps a picture that is about to be served, and which these changes made of the one before.
    pub(crate) fn keep(&mut self, fleet: &Snapshot, changes: &[Change], now: Timestamp) -> Result<(), String> {
        let kept = match self.open.take() {
            Some(open) if open.room > 0 => append(open, changes, now),
            _ => write(&self.path, fleet, now),
        };
        match kept {
            Ok(open) => {
                self.open = Some(open);
                Ok(())
            }
            Err(error) => self.forget(&error),
        }
    }

    /// Keeps a picture of another history.
    pub(crate) fn replace(&mut self, fleet: &Snapshot, now: Timestamp) -> Result<(), String> {
        self.open = None;
        self.keep(fleet, &[], now)
    }

    /// The picture is still at the head of the log.
    pub(crate) fn beat(&mut self, now: Timestamp) {
        if let Some(open) = &mut self.open
            && now.duration_since(open.beat) >= HEARTBEAT
        {
            open.beat = now;
            if let Err(error) = open.file.set_modified(now.into()) {
                tracing::warn!(file = %self.path.display(), "the kept picture looks older than it is: {error}");
            }
        }
    }

    /// What could not be written must not be there: it would be an older picture when it is needed. The next change tries
    /// again.
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

enum Unusable {
    Missing,
    Because(String),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Because(error.to_string()) }
    }
}

fn read(path: &Path, registry: &Arc<Registry>) -> Result<(Kept, Open), Unusable> {
    let because = |error: &dyn ToString| Unusable::Because(error.to_string());
    let file = File::options().read(true).append(true).open(path)?;
    let at = Timestamp::try_from(file.metadata()?.modified()?).map_err(|error| because(&error))?;
    let (picture, changes) = Archive::open(BufReader::new(&file)).map_err(|error| because(&error))?;
    let mut fleet =
        Snapshot::load(registry.clone(), picture.point, picture.documents).map_err(|error| because(&error))?;
    for change in changes {
        let change = change.map_err(|error| because(&error))?;
        fleet = fleet.apply(&change).map_err(|error| because(&error))?;
    }
    Ok((Kept { fleet, at }, Open { file, room: 0, beat: at }))
}

/// Writes the whole picture beside the file, and puts it in its place.
fn write(path: &Path, fleet: &Snapshot, now: Timestamp) -> io::Result<Open> {
    let new = path.with_added_extension("new");
    let file = File::create(&new)?;
    let mut to = BufWriter::new(&file);
    let picture = Picture { point: *fleet.point(), documents: fleet.all_documents().cloned().collect() };
    archive::write_picture(&mut to, &picture, *fleet.point())?;
    to.flush()?;
    drop(to);
    file.sync_all()?;
    let room = file.metadata()?.len() + SLACK;
    fs::rename(&new, path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(Open { file, room, beat: now })
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
