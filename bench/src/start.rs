//! The time from the start of the process to ready, compared with the time in which `sqlite3` reads the same rows.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::{Spread, grouped, milliseconds, rounded},
    machine::Core,
    report::{Section, TargetCheck},
    rows::{self, TableRow},
    seeded::Seeded,
};

/// All in milliseconds.
struct Starts {
    size: usize,
    ready: Spread,
    sqlite: Spread,
    /// The first start, which creates the change log from a seed file.
    seeding: f64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    rows::measure_all(bench, bench.fleets.iter(), measure)
}

fn measure(bench: &Bench, fleet: &Seeded) -> Starts {
    let (mut ready, mut sqlite) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.repetitions {
        sqlite.push(read(fleet));
        let server = fleet.serve(&bench.machine, Core::Any);
        ready.push(milliseconds(server.ready_after));
        server.stop();
    }
    let seeding = milliseconds(fleet.seeding);
    Starts { size: fleet.size, ready: Spread::new(ready), sqlite: Spread::new(sqlite), seeding }
}

/// Milliseconds in which `sqlite3` reads all documents.
pub(crate) fn read(fleet: &Seeded) -> f64 {
    let start = Instant::now();
    let read = Command::new("sqlite3")
        .arg(fleet.folder.join("fleet.db"))
        .arg("SELECT * FROM fleet_documents")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let taken = milliseconds(start.elapsed());
    assert!(read.success(), "sqlite3 could not read the rows");
    taken
}

impl Starts {
    fn ratio(&self) -> f64 {
        self.ready.median / self.sqlite.median
    }
}

impl TableRow for Starts {
    const TITLE: &'static str = "Start (ms; median, least and most)";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        let heads = ["clusters", "to ready", "sqlite3 reads the rows", "x", "seeding"];
        let [clusters, ready, sqlite, ratio, seeding] = heads;
        format!("{clusters:>8} {ready:>30} {sqlite:>30} {ratio:>6} {seeding:>10}")
    }

    fn line(&self) -> String {
        let cell = |spread: &Spread| format!("{:.1} ({:.1}-{:.1})", spread.median, spread.min, spread.max);
        let (ready, sqlite, seeding) = (cell(&self.ready), cell(&self.sqlite), grouped(self.seeding));
        format!("{:>8} {ready:>30} {sqlite:>30} {:>6.2} {seeding:>10}", self.size, self.ratio())
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "ready_ms": self.ready.json(),
            "sqlite3_ms": self.sqlite.json(),
            "ratio": rounded(self.ratio()),
            "seeding_ms": rounded(self.seeding),
        })
    }

    fn verdicts(&self, is_main: bool) -> Vec<TargetCheck> {
        let what = format!("start to ready at {} clusters, compared with sqlite3 reading the rows", self.size);
        is_main.then(|| TargetCheck::at_most(what, self.ratio(), 2.0, "x")).into_iter().collect()
    }
}
