//! The scenarios, in the order in which they run.

mod api_refuses;
mod artifacts;
mod compared;
mod convergence;
pub(crate) mod demo;
mod deployment;
mod never_collected;
mod recreated;
mod removal;
mod ways_in;

use crate::world::World;

/// Something that must be true of the whole.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What is shown, in a sentence.
    pub(crate) claim: &'static str,
    pub(crate) run: fn(&mut World),
}

const fn scenario(name: &'static str, claim: &'static str, run: fn(&mut World)) -> Scenario {
    Scenario { name, claim, run }
}

/// All of them; the others stand on the first.
pub(crate) fn all() -> Vec<Scenario> {
    [
        &convergence::SCENARIOS[..],
        &artifacts::SCENARIOS,
        &never_collected::SCENARIOS,
        &recreated::SCENARIOS,
        &api_refuses::SCENARIOS,
        &removal::SCENARIOS,
        &deployment::SCENARIOS,
        &ways_in::SCENARIOS,
    ]
    .concat()
}
