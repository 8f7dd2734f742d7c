//! `flux-resourceset-cli`: the command line tool for operators.
//!
//! [`arguments`] parses the command line, a [`session`] holds the connection to the server and the output format, and
//! each command is a module of [`commands`]. Data goes to standard output, messages go to standard error. If a change
//! would take inputs from clusters that the command does not name, the tool shows the plan and asks first
//! ([`consent`]).

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
mod table;
mod tag;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    // If the shell asks for completions, this prints them and ends the process.
    clap_complete::CompleteEnv::with_factory(Arguments::command).complete();
    match commands::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
