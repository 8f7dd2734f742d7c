//! Faults: real servers, a real PostgreSQL, and a real failure.
//!
//! After each: no acknowledged change is lost, no answer got shorter, and all replicas are equal in the end. The tests take
//! minutes, so only `make faults` runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "faults take time")]
#![allow(clippy::print_stdout, reason = "the measured rates are printed")]

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
