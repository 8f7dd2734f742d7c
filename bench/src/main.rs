//! How fast it is. Machines are shared and noisy, so times stand beside the time of what they cannot do without, measured
//! in the same run: a figure is a ratio.
//!
//! `bench` measures everything; `bench --smoke` does the same with less, to see that it works.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it measures, tells, and fails by panicking"
)]

mod replicas;
mod times;

fn main() {
    let smoke = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--smoke") => true,
        Some(other) => panic!("\"{other}\" is not --smoke"),
    };
    replicas::run(if smoke { 100 } else { 1_000 });
}
