//! Our server, as a separate process on a SQLite file.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use harness::{LONG, READ, WRITE};

use crate::{
    http::HttpConnection,
    machine::{self, Core, Machine},
};

/// Between two requests to a server that is starting: each takes processor time from it.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
    pub(crate) log: PathBuf,
    /// From the start of the process to the first 200 of `/ready`.
    pub(crate) ready_after: Duration,
}

impl Server {
    /// Starts a server on the database of a folder and waits until it is ready.
    pub(crate) fn start(machine: &Machine, core: Core, folder: &Path, settings: &[(&str, &str)]) -> Self {
        Self::start_under(machine, core, &[], folder, settings)
    }

    /// The same, started by another program with these arguments.
    pub(crate) fn start_under(
        machine: &Machine,
        core: Core,
        under: &[&str],
        folder: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let address = free_address();
        let log = folder.join("server.log");
        let server = machine::server();
        let command_line = [under, &[&server]].concat();
        let mut command = machine.command(core, "KILL", command_line[0]);
        command
            .args(&command_line[1..])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AUTH_TOKEN", READ)
            .env("CRUD_AUTH_TOKEN", WRITE)
            .env("LISTEN_ADDR", &address)
            .env("DATABASE_URL", "sqlite://fleet.db?mode=rwc")
            .envs(settings.iter().copied())
            .current_dir(folder)
            .stdout(File::create(folder.join("server.out")).unwrap())
            .stderr(File::create(&log).unwrap());
        let start = Instant::now();
        let process = command.spawn().unwrap();
        let mut server = Self { process, address, log, ready_after: Duration::ZERO };
        while !server.is_ready() {
            let ended = server.process.try_wait().unwrap();
            let log = || fs::read_to_string(&server.log).unwrap_or_default();
            assert!(ended.is_none() && start.elapsed() < LONG * 5, "the server is not ready: {}", log());
            thread::sleep(PAUSE);
        }
        server.ready_after = start.elapsed();
        server
    }

    fn is_ready(&self) -> bool {
        let ask = || HttpConnection::open(&self.address)?.get("/ready", "");
        ask().is_ok_and(|answer| answer.status == 200)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn connect(&self) -> HttpConnection {
        HttpConnection::open(&self.address).unwrap()
    }

    /// Stops it with SIGTERM, so that its database is in one file.
    pub(crate) fn stop(mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status().unwrap();
        assert!(sent.success(), "the server has already ended");
        let ended = self.process.wait().unwrap();
        assert!(ended.success(), "the server ended with {ended}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A free address on loopback.
pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
