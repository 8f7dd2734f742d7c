//! From the start of the process to ready, beside the time in which `sqlite3` reads the same rows and throws them away.

use std::{
    fmt::Write as _,
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::{Spread, grouped, milliseconds, rounded},
    machine::Core,
    plan::Plan,
    report::{Section, Verdict},
    seeded::Seeded,
};

struct Start {
    rows: Vec<Row>,
    plan: Plan,
}

/// All in milliseconds.
struct Row {
    size: usize,
    ready: Spread,
    sqlite: Spread,
    /// The first start, which made the log from a seed file.
    seeding: f64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let rows = bench.fleets.iter().map(|fleet| measure(bench, fleet)).collect();
    Box::new(Start { rows, plan: bench.plan.clone() })
}

fn measure(bench: &Bench, fleet: &Seeded) -> Row {
    let (mut ready, mut sqlite) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.repetitions {
        sqlite.push(read(fleet));
        let server = fleet.serve(&bench.machine, Core::Any);
        ready.push(milliseconds(server.ready_after));
        server.stop();
    }
    let seeding = milliseconds(fleet.seeding);
    Row { size: fleet.size, ready: Spread::new(ready), sqlite: Spread::new(sqlite), seeding }
}

fn read(fleet: &Seeded) -> f64 {
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

impl Row {
    fn ratio(&self) -> f64 {
        self.ready.median / self.sqlite.median
    }
}

impl Section for Start {
    fn table(&self) -> String {
        let mut table = String::from("Start (ms; median, and from the least to the most)\n\n");
        let heads = ["clusters", "to ready", "sqlite3 reads the rows", "x", "seeding"];
        let [clusters, ready, sqlite, ratio, seeding] = heads;
        writeln!(table, "{clusters:>8} {ready:>30} {sqlite:>30} {ratio:>6} {seeding:>10}").unwrap();
        for row in &self.rows {
            let told = |spread: &Spread| format!("{:.1} ({:.1}-{:.1})", spread.median, spread.min, spread.max);
            writeln!(
                table,
                "{:>8} {:>30} {:>30} {:>6.2} {:>10}",
                row.size,
                told(&row.ready),
                told(&row.sqlite),
                row.ratio(),
                grouped(row.seeding)
            )
            .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "clusters": row.size,
                "ready_ms": row.ready.json(),
                "sqlite3_ms": row.sqlite.json(),
                "ratio": rounded(row.ratio()),
                "seeding_ms": rounded(row.seeding),
            })
        };
        self.rows.iter().map(row).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |row: &Row| {
            let what = format!("start to ready at {} clusters, beside sqlite3 reading the rows", row.size);
            Verdict::at_most(what, row.ratio(), 2.0, "x")
        };
        self.rows.iter().filter(|row| row.size == self.plan.main).map(verdict).collect()
    }
}
