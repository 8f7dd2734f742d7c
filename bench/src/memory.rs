//! What a server holds: after a restart, and after every cluster has asked for every type, without gzip over connections
//! that are kept and with gzip over one for each poll.

use std::{fmt::Write as _, fs};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::rounded,
    fleet::{TYPES, cluster_dns},
    machine::{Core, resident},
    report::{Section, Verdict},
    seeded::Seeded,
    wrk::{self, Manner, Order, Target},
};

struct Memory(Vec<Row>);

/// All in MiB.
struct Row {
    size: usize,
    restarted: f64,
    restarted_peak: f64,
    loaded: f64,
    loaded_peak: f64,
    /// What the database is on the disk.
    database: f64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    Box::new(Memory(bench.fleets.iter().map(|fleet| measure(bench, fleet)).collect()))
}

fn measure(bench: &Bench, fleet: &Seeded) -> Row {
    let names: Vec<_> = (0..fleet.size).map(cluster_dns).collect();
    let file = fleet.folder.join("all");
    fs::write(&file, names.join("\n")).unwrap();
    let server = fleet.serve(&bench.machine, Core::Measured);
    let (restarted, restarted_peak) = resident(server.pid());
    let target = Target { address: &server.address, pid: server.pid(), names: &file, log: &server.log };
    for (kept, gzip) in [(true, false), (false, true)] {
        for manner in TYPES.map(|kind| Manner { kind, kept, gzip }) {
            let mut asked = 0;
            while asked < fleet.size {
                asked += wrk::run(&bench.machine, target, manner, Order::InTurn(asked), 1).requests as usize;
            }
        }
    }
    let (loaded, loaded_peak) = resident(server.pid());
    let database = fs::metadata(fleet.folder.join("fleet.db")).unwrap().len() as f64 / f64::from(1 << 20);
    Row { size: fleet.size, restarted, restarted_peak, loaded, loaded_peak, database }
}

impl Section for Memory {
    fn table(&self) -> String {
        let mut table = String::from("Memory (RSS in MiB; the most it ever was in brackets)\n\n");
        writeln!(table, "{:>8} {:>20} {:>20} {:>20}", "clusters", "after a restart", "after load", "database on disk")
            .unwrap();
        for row in &self.0 {
            writeln!(
                table,
                "{:>8} {:>11.1} ({:>6.1}) {:>11.1} ({:>6.1}) {:>20.1}",
                row.size, row.restarted, row.restarted_peak, row.loaded, row.loaded_peak, row.database
            )
            .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "clusters": row.size,
                "restarted_mib": rounded(row.restarted),
                "restarted_peak_mib": rounded(row.restarted_peak),
                "loaded_mib": rounded(row.loaded),
                "loaded_peak_mib": rounded(row.loaded_peak),
                "database_mib": rounded(row.database),
            })
        };
        self.0.iter().map(row).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let most = |row: &Row| match row.size {
            10_000 => Some(64.0),
            100_000 => Some(512.0),
            _ => None,
        };
        let verdict = |row: &Row| {
            let what = format!("RSS after load at {} clusters", row.size);
            Some(Verdict::at_most(what, row.loaded, most(row)?, "MiB"))
        };
        self.0.iter().filter_map(verdict).collect()
    }
}
