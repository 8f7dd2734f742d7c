//! How fast it is. Machines are shared and noisy, so every figure is measured in the same run, in turns with something
//! that it is compared with: polls with nginx and the same bodies as files, writes and starts with `SQLite`, replicas with a
//! round trip to their database. The report has the median of the repetitions, and the smallest and largest of them.
//!
//! `bench` measures everything and writes `bench/results/results.json` and the chart of the book. `bench --smoke` does the
//! same with less, to see that it works. `bench polls memory` measures only these sections. Both write to the target
//! directory only.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it measures, prints, and fails by panicking"
)]

mod bare_servers;
mod bulk;
mod catalogue;
mod chart;
mod edits;
mod figures;
mod fleet;
mod fleets;
mod hostile;
mod http;
mod instructions;
mod machine;
mod memory;
mod nginx;
mod pace;
mod plan;
mod polls;
mod replicas;
mod report;
mod rows;
mod seeded;
mod server;
mod start;
mod store_alone;
mod watch;
mod writes;
mod wrk;

use std::{cell::Cell, process::ExitCode};

use crate::{
    machine::Machine,
    plan::BenchPlan,
    report::{Report, Section},
    seeded::Seeded,
};

/// The input of every section.
struct Bench {
    plan: BenchPlan,
    machine: Machine,
    fleets: Vec<Seeded>,
    /// How many disturbed runs may still be repeated.
    repeats: Cell<usize>,
}

type Run = fn(&Bench) -> Box<dyn Section>;

/// All sections, in the order in which they are measured and printed.
const SECTIONS: [(&str, Run); 11] = [
    ("polls", polls::run),
    ("instructions", instructions::run),
    ("memory", memory::run),
    ("start", start::run),
    ("fleets", fleets::run),
    ("writes", writes::run),
    ("store", store_alone::run),
    ("edits", edits::run),
    ("bulk", bulk::run),
    ("hostile", hostile::run),
    ("replicas", replicas::run),
];

fn main() -> ExitCode {
    let names = SECTIONS.map(|(name, _)| name);
    let plan = match BenchPlan::read(std::env::args().skip(1), &names) {
        Ok(plan) => plan,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            return ExitCode::from(2);
        }
    };
    let machine = Machine::detect();
    let folder = machine::folder();
    let fleets = plan.sizes.iter().map(|&size| Seeded::make(&machine, folder.path(), size)).collect();
    let bench = Bench { repeats: Cell::new(plan.repeats()), plan, machine, fleets };
    let mut report = Report::new();
    for (name, run) in SECTIONS.iter().filter(|(name, _)| bench.plan.has(name)) {
        eprintln!("bench: {name}");
        machine::settle();
        report.add(name, run(&bench));
    }
    report.print(&bench);
    ExitCode::SUCCESS
}
