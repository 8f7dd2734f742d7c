//! Backup and restore: the log of a store as one file, from any backend to any other.

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

/// Writes the log of a store to a file: whole, or not at all.
pub async fn back_up(backend: &Backend, file: &Path) -> Result<(), Fatal> {
    let store = backend.open_for_reading().await?;
    let head = if is_standard(file) {
        write(&*store, io::stdout()).await?
    } else if fs::metadata(file).is_ok_and(|about| !about.is_file()) {
        write(&*store, File::options().write(true).open(file).map_err(|error| place(file, error))?).await?
    } else {
        // It takes the file's place once it is whole.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let new = NamedTempFile::new_in(folder).map_err(|error| place(folder, error))?;
        let head = write(&*store, new.as_file()).await?;
        let kept = new.as_file().sync_all().and_then(|()| Ok(new.persist(file)?)).and_then(|_| sync_folder(file));
        kept.map_err(|error| place(file, error))?;
        head
    };
    store.close().await;
    tell(&format!("the log is backed up, to {head}"))
}

async fn write(store: &dyn Store, to: impl io::Write + Send) -> Result<model::Point, Fatal> {
    let bar = bar("{wide_bar} {pos}/{len} changes {eta}");
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

/// Puts the log of a store back from a file: whole, or not at all.
pub async fn restore(backend: &Backend, file: &Path, replace: bool) -> Result<(), Fatal> {
    let mut from = if is_standard(file) {
        let needed = |error| Fatal::Other(format!("a temporary file is needed, and TMPDIR says where: {error}"));
        let mut spooled = tempfile::tempfile().map_err(needed)?;
        io::copy(&mut io::stdin().lock(), &mut spooled).map_err(|error| place(file, error))?;
        spooled
    } else {
        File::open(file).map_err(|error| place(file, error))?
    };
    let because = |error| match error {
        RestoreError::Archive(what) => Fatal::Other(format!("{}: {what}", file.display())),
        RestoreError::Store(error) => Fatal::Store(error),
        error @ RestoreError::NotEmpty { .. } => {
            Fatal::Other(format!("{error}; \"--replace\" puts this one in its place"))
        }
    };
    // Read once before anything is touched: nobody waits for a file that does not read.
    let mut open = |what: &str| -> Result<_, Fatal> {
        from.rewind().map_err(|error| place(file, error))?;
        let bar = bar(&format!("{what} {{wide_bar}} {{bytes}}/{{total_bytes}} {{eta}}"));
        bar.set_length(from.metadata().map_err(|error| place(file, error))?.len());
        let from = from.try_clone().map_err(|error| place(file, error))?;
        Archive::open(BufReader::new(bar.wrap_read(from))).map_err(because)
    };
    for change in open("reading")?.1 {
        change.map_err(because)?;
    }
    let (picture, mut changes) = open("restoring")?;
    let store = backend.open().await?;
    let head = store.restore(picture, &mut changes, replace).await.map_err(because)?;
    // The bar goes with it, before the last word.
    drop(changes);
    store.close().await;
    tell(&format!("the log is restored, to {head}"))
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Shows itself on a terminal only, and goes when it is done.
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

fn tell(what: &str) -> Result<(), Fatal> {
    writeln!(io::stderr(), "{what}").map_err(Fatal::other)
}
