//! Backup and restore: the log of a store as one file, from any backend to any other.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, IsTerminal as _, Write as _},
    path::Path,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use store::{
    RestoreError,
    archive::{self, Archive, BackupError},
};

use crate::{Fatal, config::Backend};

/// Writes the log of a store to a file: whole, or not at all.
pub async fn back_up(backend: &Backend, file: &Path) -> Result<(), Fatal> {
    let store = backend.open().await?;
    let bar = bar("{wide_bar} {pos}/{len} changes {eta}");
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let written = if is_standard(file) {
        archive::back_up(&*store, &mut BufWriter::new(io::stdout()), progress).await.map_err(told)
    } else {
        let new = file.with_added_extension("new");
        let written = async {
            let to = File::create(&new).map_err(|error| place(&new, error))?;
            let head = archive::back_up(&*store, &mut BufWriter::new(&to), progress).await.map_err(told)?;
            to.sync_all().and_then(|()| std::fs::rename(&new, file)).map_err(|error| place(file, error))?;
            Ok(head)
        };
        written.await.inspect_err(|_| drop(std::fs::remove_file(&new)))
    };
    bar.finish_and_clear();
    store.close().await;
    tell(&format!("the log is backed up, to {}", written?))
}

/// Puts the log of a store back from a file: whole, or not at all.
pub async fn restore(backend: &Backend, file: &Path, replace: bool) -> Result<(), Fatal> {
    let (from, length): (Box<dyn BufRead + Send>, _) = if is_standard(file) {
        (Box::new(BufReader::new(io::stdin())), None)
    } else {
        let from = File::open(file).map_err(|error| place(file, error))?;
        let length = from.metadata().map_err(|error| place(file, error))?.len();
        (Box::new(BufReader::new(from)), Some(length))
    };
    let bar = bar("{wide_bar} {bytes}/{total_bytes} {eta}");
    if let Some(length) = length {
        bar.set_length(length);
    }
    let because = |error| match error {
        RestoreError::Archive(what) => Fatal::Other(format!("{}: {what}", file.display())),
        RestoreError::Store(error) => Fatal::Store(error),
        error @ RestoreError::NotEmpty { .. } => {
            Fatal::Other(format!("{error}; \"--replace\" puts this one in its place"))
        }
    };
    let (picture, mut changes) = Archive::open(BufReader::new(bar.wrap_read(from))).map_err(because)?;
    let store = backend.open().await?;
    let head = store.restore(picture, &mut changes, replace).await.map_err(because);
    bar.finish_and_clear();
    store.close().await;
    tell(&format!("the log is restored, to {}", head?))
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Shows itself on a terminal only.
fn bar(look: &str) -> ProgressBar {
    let bar = if io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template(look) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn place(file: &Path, error: io::Error) -> Fatal {
    Fatal::Other(format!("{}: {error}", file.display()))
}

fn told(error: BackupError) -> Fatal {
    match error {
        BackupError::Store(error) => Fatal::Store(error),
        BackupError::Io(_) => Fatal::other(error),
    }
}

fn tell(what: &str) -> Result<(), Fatal> {
    writeln!(io::stderr(), "{what}").map_err(Fatal::other)
}
