//! Seeded fleets: databases that a server has created from a seed file. That server is stopped, so every measurement is after a
//! restart.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    fleet::{self, Style},
    machine::{Core, Machine},
    server::Server,
};

/// The fleet of a size.
pub(crate) struct Seeded {
    pub(crate) size: usize,
    pub(crate) folder: PathBuf,
    /// From the start of a server with a seed file to ready.
    pub(crate) seeding: Duration,
}

impl Seeded {
    pub(crate) fn make(machine: &Machine, under: &Path, size: usize) -> Self {
        Self::make_as(machine, under, size, Style::Clean)
    }

    /// A fleet whose documents are of another style.
    pub(crate) fn make_as(machine: &Machine, under: &Path, size: usize, style: Style) -> Self {
        let folder = under.join(format!("{size}-{}", style.name()));
        fs::create_dir(&folder).unwrap();
        let seed = folder.join("seed.json");
        fleet::write_seed(&seed, size, style);
        let server = Server::start(machine, Core::Any, &folder, &[("SEED_FILE", "seed.json")]);
        let seeding = server.ready_after;
        server.stop();
        fs::remove_file(seed).unwrap();
        eprintln!("bench: {size} clusters ({}) were seeded in {:.1} s", style.name(), seeding.as_secs_f64());
        Self { size, folder, seeding }
    }

    /// A server that only answers polls.
    pub(crate) fn serve(&self, machine: &Machine, core: Core) -> Server {
        Server::start(machine, core, &self.folder, &[("SEED_FILE", "")])
    }

    /// A server that takes changes, on a copy of the database.
    pub(crate) fn serve_changes(&self, machine: &Machine, core: Core) -> (Server, TempDir) {
        self.serve_changes_under(machine, core, &[])
    }

    /// The same, started by another program.
    pub(crate) fn serve_changes_under(&self, machine: &Machine, core: Core, under: &[&str]) -> (Server, TempDir) {
        let folder = tempfile::tempdir_in(&self.folder).unwrap();
        fs::copy(self.folder.join("fleet.db"), folder.path().join("fleet.db")).unwrap();
        let settings = [("SEED_FILE", ""), ("API_MODE", "crud")];
        let server = Server::start_under(machine, core, under, folder.path(), &settings);
        (server, folder)
    }
}
