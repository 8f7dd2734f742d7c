//! `flux-resourceset-cli`: the operator's tool.
//!
//! The command line is read into values ([`arguments`]), a [`session`] knows the server and how to show things, and
//! each command is a module of [`commands`]. Standard output is data, standard error is talk. What a command does not
//! name itself is not taken from a cluster unseen ([`consent`]).

mod arguments;
mod commands;
mod completion;
mod consent;
mod contexts;
mod documents;
mod escape;
mod failure;
mod files;
mod output;
mod plan;
mod selector;
mod session;
mod settings;
mod table;
mod tag;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    // Answers the shell and ends, if it is a shell that asks.
    clap_complete::CompleteEnv::with_factory(Arguments::command).complete();
    match commands::run(Arguments::parse()) {
        Ok(code) => code,
        Err(failure) => failure.tell(),
    }
}
