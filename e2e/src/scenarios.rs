//! The scenarios, in the order in which they run.

mod api_refuses;
mod artifacts;
mod compared;
mod convergence;
pub(crate) mod demo;
mod deployment;
mod nothing_lost;
mod recreated;
mod removal;
mod ways_in;

use crate::world::World;

/// An end-to-end test.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The claim that it tests, in a sentence.
    pub(crate) claim: &'static str,
    pub(crate) run: fn(&mut World),
}

const fn scenario(name: &'static str, claim: &'static str, run: fn(&mut World)) -> Scenario {
    Scenario { name, claim, run }
}

/// All scenarios; the others need the first.
pub(crate) fn all() -> Vec<Scenario> {
    [
        &convergence::SCENARIOS[..],
        &artifacts::SCENARIOS,
        &nothing_lost::SCENARIOS,
        &recreated::SCENARIOS,
        &api_refuses::SCENARIOS,
        &removal::SCENARIOS,
        &deployment::SCENARIOS,
        &ways_in::SCENARIOS,
    ]
    .concat()
}
