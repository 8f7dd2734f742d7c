//! `cluster restore` and `cluster purge`: what becomes of a decommissioned cluster; `cluster release-dns`: what becomes of a
//! former DNS name.

use std::process::ExitCode;

use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{Asked, Consent, Deed},
    failure::Result,
    session::Session,
};

#[derive(Args)]
pub(crate) struct Restore {
    /// Which; flux-resourceset-cli cluster list --decommissioned lists them
    #[arg(add = completion::of(completion::decommissioned))]
    id: String,
    #[command(flatten)]
    consent: Consent,
}

impl Restore {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        perform(session, &self.id, (Edit::restore(&self.id), Asked::Never), self.consent, "restored")
    }
}

#[derive(Args)]
pub(crate) struct Purge {
    /// Which; flux-resourceset-cli cluster list --decommissioned lists them
    #[arg(add = completion::of(completion::decommissioned))]
    id: String,
    #[command(flatten)]
    consent: Consent,
}

impl Purge {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        // Whoever still polls under a name that the cluster has released loses what only this cluster remembers.
        perform(session, &self.id, (Edit::purge(&self.id), Asked::IfSomethingGoes), self.consent, "purged")
    }
}

#[derive(Args)]
pub(crate) struct ReleaseDns {
    /// The cluster
    #[arg(add = completion::of(completion::clusters))]
    id: String,
    /// One of its former DNS names
    name: String,
    #[command(flatten)]
    consent: Consent,
}

impl ReleaseDns {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let done = format!("released {}", self.name);
        perform(session, &self.id, (Edit::release_dns(&self.id, &self.name), Asked::Never), self.consent, &done)
    }
}

fn perform(
    session: &Session,
    id: &str,
    (edit, asked): (Edit, Asked),
    consent: Consent,
    verb: &str,
) -> Result<ExitCode> {
    let name = session.clusters()?.name(id);
    let done = format!("{name} {verb}");
    // The ids that could be meant are those of decommissioned clusters, which nobody lists here.
    consent.perform(session, Deed { edit, asked, done, names: vec![name], named: Vec::new() })
}
