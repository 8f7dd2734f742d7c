//! What happens when something breaks: real servers, a real PostgreSQL, and the fault itself.
//!
//! After each: nothing acknowledged is lost, no answer got shorter, and all replicas are equal in the end. These take
//! minutes, so `make faults` runs them.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "faults take time")]
#![expect(clippy::print_stdout, reason = "what was shown is told")]

#[path = "../api/harness.rs"]
#[expect(dead_code, unused_imports, reason = "shared with the tests of the API")]
mod server;

mod crashes;
mod disks;
mod failovers;
mod networks;
mod outages;
mod replicas;
mod roles;
mod world;
