//! End-to-end tests of the product's claim: after a change in the API the cluster converges by itself; and whatever happens to
//! the API, a live cluster loses nothing. With the real Flux Operator, Kubernetes and Flux controllers, on loopback.
//!
//! `e2e PARTS [SCENARIO …]` runs all scenarios in their order, or the first boot and the named ones; `PARTS` is the folder that
//! `e2e/build` prints. Scenarios share one cluster, and each leaves the fleet as it found it. The first failure ends the run.

#![expect(clippy::panic, clippy::unwrap_used, reason = "scenarios fail by panicking")]

mod clock;
mod inventory;
mod kubectl;
mod packages;
mod peer;
mod scenarios;
mod stack;
mod timeline;
mod web;
mod world;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::{
    clock::Stopwatch,
    inventory::Inventory,
    scenarios::Scenario,
    world::{World, print},
};

fn main() -> ExitCode {
    clock::end_on_signals();
    let mut arguments = std::env::args().skip(1);
    let Some(parts) = arguments.next().map(PathBuf::from) else {
        print("usage: e2e PARTS [SCENARIO …], or e2e PARTS demo");
        return ExitCode::from(2);
    };
    let names: Vec<String> = arguments.collect();
    if names == ["demo"] {
        return exit_code_of(|| scenarios::demo::run(&parts));
    }
    let mut all = scenarios::all();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|scenario| scenario.name == **name)) {
        let known: Vec<_> = all.iter().map(|scenario| format!("  {}", scenario.name)).collect();
        print(&format!("there is no scenario {unknown}; there are:\n{}", known.join("\n")));
        return ExitCode::from(2);
    }
    if !names.is_empty() {
        let first = all[0].name;
        all.retain(|scenario| scenario.name == first || names.iter().any(|name| name == scenario.name));
    }
    exit_code_of(|| run(&parts, &all))
}

/// The exit code of a run; a panic is a failure, and has released everything.
fn exit_code_of(run: impl FnOnce() -> ExitCode) -> ExitCode {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(ExitCode::FAILURE)
}

fn run(parts: &Path, scenarios: &[Scenario]) -> ExitCode {
    let whole = Stopwatch::start();
    print("e2e: bringing up the stack");
    let mut world = World::new(parts);
    print(&format!("e2e: up after {:.1} s", whole.seconds()));
    let mut times = Vec::new();
    let mut fleet: Option<Inventory> = None;
    for Scenario { name, claim, run } in scenarios {
        print(&format!("\n=== {name}: {claim}"));
        world.watch = Stopwatch::start();
        run(&mut world);
        // A scenario leaves the fleet as it found it; otherwise the next one would not test its claim.
        match &fleet {
            None => fleet = Some(world.inventory()),
            Some(fleet) => {
                world.until("all is as it was after the first boot", |kubectl| {
                    Inventory::read(kubectl).has_same_names_as(fleet)
                });
            }
        }
        let took = world.watch.seconds();
        print(&format!("ok {name} ({took:.1} s)"));
        times.push(format!("  {took:7.1} s  {name}"));
    }
    print(&format!("\ne2e: {} scenarios passed in {:.0} s\n{}", times.len(), whole.seconds(), times.join("\n")));
    ExitCode::SUCCESS
}
