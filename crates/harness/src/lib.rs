//! For tests: a real server process, with its own environment, folder and port, and a real database, network proxy, small disk
//! and load generator. All of them end with their test.

#![expect(clippy::missing_panics_doc, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use tempfile::{NamedTempFile, TempDir};

mod disk;
mod guardian;
mod load;
mod postgres;
mod proxy;

pub use disk::SmallDisk;
pub use load::{Load, LoadReport};
pub use postgres::Postgres;
pub use proxy::Proxy;

/// The token that may read.
pub const READ: &str = "read-token";
/// The token that may read and write.
pub const WRITE: &str = "write-token";
/// Longer than any wait should take, on a busy machine.
pub const LONG: Duration = Duration::from_mins(2);

/// A file of the repository.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The command of a server that listens on a free port.
#[must_use]
pub fn command(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .current_dir(folder)
        .env("AUTH_TOKEN", READ)
        .env("CRUD_AUTH_TOKEN", WRITE)
        .env("LISTEN_ADDR", "127.0.0.1:0");
    command
}

/// A running server.
pub struct Running {
    /// The folder of its database.
    pub folder: Arc<TempDir>,
    process: Child,
    address: String,
    /// A file and not a pipe: a line that was logged before an answer can be read as soon as the answer has arrived.
    log: NamedTempFile,
}

impl Running {
    /// Starts a server and waits until it listens.
    #[must_use]
    pub fn launch(binary: &Path, folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Self {
        let mut command = command(binary, folder.path());
        let log = NamedTempFile::new().unwrap();
        let process = command.envs(settings.iter().copied()).stderr(log.reopen().unwrap()).spawn().unwrap();
        let mut server = Self { folder, process, address: String::new(), log };
        eventually("the server listens", &mut || {
            let (ended, log) = (server.process.try_wait().unwrap(), server.log());
            let line = log.split_once("listening address=").map(|(_, rest)| rest);
            let address = line.and_then(|line| Some(line.split_once(' ')?.0.to_owned()));
            assert!(address.is_some() || ended.is_none(), "the server does not listen: {log}");
            address.is_some_and(|address| {
                server.address = address;
                true
            })
        });
        server
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log.path()).unwrap()).into_owned()
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it has ended.
    #[must_use]
    pub fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Running {
    /// Kills it.
    pub fn end(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until a condition holds; fails after [`LONG`].
pub fn eventually(what: &str, condition: &mut dyn FnMut() -> bool) {
    eventually_or(&|| what.to_owned(), condition);
}

/// The same, with a description that is computed when the wait fails.
#[expect(clippy::disallowed_methods, reason = "a test that waits needs to know for how long")]
pub fn eventually_or(what: &dyn Fn() -> String, condition: &mut dyn FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "timeout after {} s: {}", LONG.as_secs(), what());
        thread::sleep(Duration::from_millis(10));
    }
}

/// The server's binary, built if it is missing or out of date: for tests of other packages.
#[must_use]
pub fn server() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        // Tests are in `deps`, binaries in its parent folder.
        let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
        let profile = if folder.ends_with("release") { "release" } else { "dev" };
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let arguments = ["build", "--quiet", "--locked", "--package", "flux-resourceset", "--profile", profile];
        let built = Command::new(cargo).args(arguments).current_dir(repository(".")).status().unwrap();
        assert!(built.success(), "the server cannot be built");
        folder.join("flux-resourceset")
    };
    BUILT.get_or_init(build).clone()
}
