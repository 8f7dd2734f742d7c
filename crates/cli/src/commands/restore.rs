//! `cluster restore` and `cluster purge`: what becomes of a decommissioned cluster.

use std::process::ExitCode;

use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{Asked, Consent},
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
        made(session, &self.id, &Edit::restore(&self.id), self.consent, "restored")
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
        made(session, &self.id, &Edit::purge(&self.id), self.consent, "purged")
    }
}

fn made(session: &Session, id: &str, edit: &Edit, consent: Consent, verb: &str) -> Result<ExitCode> {
    if let Some(made) = consent.carry_out(session, edit, Asked::Never)? {
        let name = format!("cluster/{id}");
        session.out.done(&format!("{name} {verb} (revision {})", made.revision), &[name], &made.body)?;
    }
    Ok(ExitCode::SUCCESS)
}
