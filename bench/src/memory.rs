//! The server's memory: after a restart, and after every cluster has polled every type, without gzip over kept connections and
//! with gzip over one connection for each poll.

use std::fs;

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::rounded,
    fleet::{TYPES, cluster_dns},
    machine::{Core, resident},
    report::{Section, TargetCheck},
    rows::{self, TableRow},
    seeded::Seeded,
    wrk::{self, LoadTarget, Manner, PollOrder},
};

/// RSS after load in MiB, by the size of the fleet.
pub(crate) const MAX_RSS_MIB: [(usize, f64); 3] = [(1_000, 32.0), (10_000, 96.0), (100_000, 768.0)];

/// The memory of a server after every cluster has polled every type, in MiB.
pub(crate) fn after_load(bench: &Bench, fleet: &Seeded) -> f64 {
    measure(bench, fleet).loaded
}

/// All in MiB.
struct MemoryUse {
    size: usize,
    restarted: f64,
    restarted_peak: f64,
    loaded: f64,
    loaded_peak: f64,
    /// The size of the database file.
    database: f64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    rows::measure_all(bench, bench.fleets.iter(), measure)
}

fn measure(bench: &Bench, fleet: &Seeded) -> MemoryUse {
    let names: Vec<_> = (0..fleet.size).map(cluster_dns).collect();
    let file = fleet.folder.join("all");
    fs::write(&file, names.join("\n")).unwrap();
    let server = fleet.serve(&bench.machine, Core::Measured);
    let (restarted, restarted_peak) = resident(server.pid());
    let target = LoadTarget { address: &server.address, pid: server.pid(), names: &file, log: &server.log };
    for (kept, gzip) in [(true, false), (false, true)] {
        for manner in TYPES.map(|kind| Manner { kind, kept, gzip, paused: false }) {
            let mut polled = 0;
            while polled < fleet.size {
                polled += wrk::run(&bench.machine, target, manner, PollOrder::InTurn(polled), 1).requests as usize;
            }
        }
    }
    let (loaded, loaded_peak) = resident(server.pid());
    let database = fs::metadata(fleet.folder.join("fleet.db")).unwrap().len() as f64 / f64::from(1 << 20);
    MemoryUse { size: fleet.size, restarted, restarted_peak, loaded, loaded_peak, database }
}

impl TableRow for MemoryUse {
    const TITLE: &'static str = "Memory (RSS in MiB; the peak in brackets)";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        format!("{:>8} {:>20} {:>20} {:>20}", "clusters", "after a restart", "after load", "database on disk")
    }

    fn line(&self) -> String {
        let Self { size, restarted, restarted_peak, loaded, loaded_peak, database } = self;
        format!(
            "{size:>8} {restarted:>11.1} ({restarted_peak:>6.1}) {loaded:>11.1} ({loaded_peak:>6.1}) {database:>20.1}"
        )
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "restarted_mib": rounded(self.restarted),
            "restarted_peak_mib": rounded(self.restarted_peak),
            "loaded_mib": rounded(self.loaded),
            "loaded_peak_mib": rounded(self.loaded_peak),
            "database_mib": rounded(self.database),
        })
    }

    fn verdicts(&self, _: bool) -> Vec<TargetCheck> {
        let bound = MAX_RSS_MIB.iter().find(|(size, _)| *size == self.size);
        let what = format!("RSS after load at {} clusters", self.size);
        bound.map(|(_, most)| TargetCheck::at_most(what, self.loaded, *most, "MiB")).into_iter().collect()
    }
}
