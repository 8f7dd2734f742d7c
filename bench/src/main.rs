//! How fast it is. Machines are shared and noisy, so a figure stands beside that of what it cannot do without, measured
//! in the same run and in turns: polls beside nginx with the same bodies as files, writes and starts beside `SQLite`, and
//! replicas beside a round trip to their database. What is told is a median, and how far the repetitions lie apart.
//!
//! `bench` measures everything and writes it into the book. `bench --smoke` does the same with less, to see that it
//! works. Names of sections, such as `bench polls memory`, are those that are measured; the book is left alone then.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it measures, tells, and fails by panicking"
)]

mod bare_servers;
mod bulk;
mod catalogue;
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
mod picture;
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
    plan::Plan,
    report::{Report, Section},
    seeded::Seeded,
};

/// What every section is given.
struct Bench {
    plan: Plan,
    machine: Machine,
    fleets: Vec<Seeded>,
    /// How many runs may still be made again because others disturbed them.
    repeats: Cell<usize>,
}

type Run = fn(&Bench) -> Box<dyn Section>;

/// All sections, in the order in which they are measured and told.
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
    let plan = match Plan::read(std::env::args().skip(1), &names) {
        Ok(plan) => plan,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            return ExitCode::from(2);
        }
    };
    let machine = Machine::look();
    let folder = machine::folder();
    let fleets = plan.sizes.iter().map(|&size| Seeded::make(&machine, folder.path(), size)).collect();
    let bench = Bench { repeats: Cell::new(plan.repeats()), plan, machine, fleets };
    let mut report = Report::new();
    for (name, run) in SECTIONS.iter().filter(|(name, _)| bench.plan.has(name)) {
        eprintln!("bench: {name}");
        machine::settle();
        report.add(name, run(&bench));
    }
    report.tell(&bench);
    ExitCode::SUCCESS
}
