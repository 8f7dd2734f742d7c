//! Backup and restore: the change log of a store as one file, from any backend to any other.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, IsTerminal as _, Seek as _, Write as _},
    path::Path,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use store::{
    RestoreError, Store,
    archive::{self, Archive, BackupError},
};
use tempfile::NamedTempFile;

use crate::{Fatal, config::Backend, snapshot_file::sync_folder};

/// Writes the change log of a store to a file: whole, or not at all.
pub async fn back_up(backend: &Backend, file: &Path) -> Result<(), Fatal> {
    let store = backend.open_for_reading().await?;
    let head = if is_standard(file) {
        write(&*store, io::stdout()).await?
    } else if fs::metadata(file).is_ok_and(|about| !about.is_file()) {
        write(&*store, File::options().write(true).open(file).map_err(|error| file_error(file, error))?).await?
    } else {
        // A new file replaces the old one once it is complete.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let new = NamedTempFile::new_in(folder).map_err(|error| file_error(folder, error))?;
        let head = write(&*store, new.as_file()).await?;
        let saved = new.as_file().sync_all().and_then(|()| Ok(new.persist(file)?)).and_then(|_| sync_folder(file));
        saved.map_err(|error| file_error(file, error))?;
        head
    };
    store.close().await;
    report(&format!("the change log is backed up to {head}"))
}

async fn write(store: &dyn Store, to: impl io::Write + Send) -> Result<model::Point, Fatal> {
    let bar = progress_bar("{wide_bar} {pos}/{len} changes {eta}");
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let head = archive::back_up(store, &mut BufWriter::new(to), progress).await;
    bar.finish_and_clear();
    head.map_err(|error| match error {
        BackupError::Store(error) => Fatal::Store(error),
        other => Fatal::other(other),
    })
}

/// Restores the change log of a store from a file: whole, or not at all.
pub async fn restore(backend: &Backend, file: &Path, replace: bool) -> Result<(), Fatal> {
    let mut from = if is_standard(file) {
        let failed = |error| Fatal::Other(format!("a temporary file cannot be created in TMPDIR: {error}"));
        let mut spooled = tempfile::tempfile().map_err(failed)?;
        io::copy(&mut io::stdin().lock(), &mut spooled).map_err(|error| file_error(file, error))?;
        spooled
    } else {
        File::open(file).map_err(|error| file_error(file, error))?
    };
    let fatal = |error| match error {
        RestoreError::Archive(message) => Fatal::Other(format!("{}: {message}", file.display())),
        RestoreError::Store(error) => Fatal::Store(error),
        error @ RestoreError::NotEmpty { .. } => {
            Fatal::Other(format!("{error}; \"--replace\" replaces it with the file's"))
        }
    };
    // The whole file is read once before the store is touched: an unreadable file changes nothing and locks nothing.
    let mut open = |label: &str| -> Result<_, Fatal> {
        from.rewind().map_err(|error| file_error(file, error))?;
        let bar = progress_bar(&format!("{label} {{wide_bar}} {{bytes}}/{{total_bytes}} {{eta}}"));
        bar.set_length(from.metadata().map_err(|error| file_error(file, error))?.len());
        let from = from.try_clone().map_err(|error| file_error(file, error))?;
        Archive::open(BufReader::new(bar.wrap_read(from))).map_err(fatal)
    };
    for change in open("reading")?.1 {
        change.map_err(fatal)?;
    }
    let (base, mut changes) = open("restoring")?;
    let store = backend.open().await?;
    let head = store.restore(base, &mut changes, replace).await.map_err(fatal)?;
    // This clears the progress bar before the last message.
    drop(changes);
    store.close().await;
    report(&format!("the change log is restored to {head}"))
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// A progress bar that is shown on a terminal only, and cleared when it is done.
fn progress_bar(template: &str) -> ProgressBar {
    let bar = if io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn file_error(file: &Path, error: io::Error) -> Fatal {
    Fatal::Other(format!("{}: {error}", file.display()))
}

fn report(message: &str) -> Result<(), Fatal> {
    writeln!(io::stderr(), "{message}").map_err(Fatal::other)
}
