//! The benchmarks. Machines are shared and noisy, so each figure is compared with a baseline that is measured in the same
//! run and in turns: polls with nginx that serves the same bodies as files, writes and starts with `SQLite`, and replicas
//! with a round trip to their database. The reports have medians, and the least and the most of the repetitions.
//!
//! `bench` measures everything and writes the results into the book. `bench --smoke` measures less, to test the benchmarks
//! themselves. With names of sections, as in `bench polls memory`, only these are measured, and the book does not change.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and fails by panicking"
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

/// The inputs of every section.
struct Bench {
    plan: BenchPlan,
    machine: Machine,
    fleets: Vec<Seeded>,
    /// How many runs may still be repeated because other processes disturbed them.
    repeats: Cell<usize>,
}

type Run = fn(&Bench) -> Box<dyn Section>;

/// All sections, in the order in which they are measured and reported.
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
