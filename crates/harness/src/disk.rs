//! A small disk that a test can fill: a file system in memory with a fixed size. Only root may mount one.

use std::{
    env,
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use crate::guardian::Guardian;

/// A disk of a few MiB. It is removed when its test process ends, however it ends.
pub struct SmallDisk {
    guardian: Guardian,
}

impl SmallDisk {
    /// Mounts a disk. Returns none where that is not permitted, and the test is skipped; in CI it panics instead.
    #[must_use]
    #[expect(clippy::explicit_write, reason = "output of print macros is hidden when the test passes")]
    pub fn mount(mebibytes: u32) -> Option<Self> {
        let guardian = Guardian::start(Command::new("sh"));
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(guardian.folder()).output().unwrap();
        if output.status.success() {
            return Some(Self { guardian });
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "a disk cannot be mounted: {reason}");
        writeln!(io::stderr(), "\nSKIPPED, the test does nothing here: a disk cannot be mounted: {reason}").unwrap();
        None
    }

    /// Its mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.guardian.folder()
    }

    /// Fills it completely.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        let error = loop {
            if let Err(error) = file.write(&[0; 4 * 1024]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    }

    /// Frees the space again.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}
