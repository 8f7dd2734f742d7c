//! The operator's tool against a real server process, as people and pipelines use it.

mod declarative;
mod failures;
mod fleet;
mod habits;
mod insight;
mod specification;
mod stage;
mod terminal;
mod types;
