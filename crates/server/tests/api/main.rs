//! The server as its users meet it: a process, its environment, its answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod book;
mod bootstrap;
mod connections;
mod first_law;
mod harness;
mod memory;
mod operators;
mod settings;
mod short_way;
