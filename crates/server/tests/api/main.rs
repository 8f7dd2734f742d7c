//! The server as its users see it: a process, its environment, its responses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod authority;
mod bodies;
mod book;
mod bootstrap;
mod clusters_list;
mod connections;
mod dns_names;
mod fast_path;
mod first_law;
mod harness;
mod hostile_bodies;
mod hostile_readers;
mod operators;
mod problems;
mod protection;
mod released_names;
mod settings;
mod snapshot_file;
mod type_changes;
