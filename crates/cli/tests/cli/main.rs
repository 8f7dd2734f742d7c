//! The command line tool against a real server process, as people and pipelines use it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bootstrap;
mod declarative;
mod dns_names;
mod environment;
mod failures;
mod fleet;
mod habits;
mod insight;
#[cfg(feature = "flux-operator")]
mod render;
mod specification;
mod store;
mod terminal;
mod type_changes;
mod types;
