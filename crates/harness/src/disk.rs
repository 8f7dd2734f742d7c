//! A small disk that can be full: a file system in memory, with a size of its own. Only root may mount one.

use std::{
    env,
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use crate::guardian::Guardian;

/// A disk of a few MiB. It goes with its test process, however that ends.
pub struct SmallDisk {
    guardian: Guardian,
}

impl SmallDisk {
    /// Mounts a disk. Where that is not permitted there is none, and the test has nothing to show. In CI it must be.
    #[must_use]
    #[allow(clippy::explicit_write, reason = "what is printed does not show when the test passes")]
    pub fn mount(mebibytes: u32) -> Option<Self> {
        let guardian = Guardian::by(Command::new("sh"));
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(guardian.folder()).output().unwrap();
        if output.status.success() {
            return Some(Self { guardian });
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "a disk cannot be mounted: {reason}");
        writeln!(io::stderr(), "\nSKIPPED, the test shows nothing here: a disk cannot be mounted: {reason}").unwrap();
        None
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.guardian.folder()
    }

    /// Leaves no room on it.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        let error = loop {
            if let Err(error) = file.write(&[0; 4 * 1024]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    }

    /// Makes the room free again.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}
