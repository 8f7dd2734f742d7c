//! `cluster restore` and `cluster purge` for decommissioned clusters; `cluster release-dns` for former DNS names.

use std::process::ExitCode;

use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::Result,
    session::Session,
};

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// Id of the cluster; to list decommissioned clusters, run flux-resourceset-cli cluster list --decommissioned
    #[arg(add = completion::completer(completion::decommissioned))]
    id: String,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl RestoreArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        perform(session, &self.id, (Edit::restore(&self.id), Confirm::Never), self.consent, "restored")
    }
}

#[derive(Args)]
pub(crate) struct PurgeArgs {
    /// Id of the cluster; to list decommissioned clusters, run flux-resourceset-cli cluster list --decommissioned
    #[arg(add = completion::completer(completion::decommissioned))]
    id: String,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl PurgeArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        // The server also forgets the released DNS names of the cluster, so the plan counts as removed what was
        // rendered under them.
        perform(session, &self.id, (Edit::purge(&self.id), Confirm::OnLoss), self.consent, "purged")
    }
}

#[derive(Args)]
pub(crate) struct ReleaseDnsArgs {
    /// Cluster id
    #[arg(add = completion::completer(completion::clusters))]
    id: String,
    /// Former DNS name of the cluster
    name: String,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl ReleaseDnsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let done = format!("released {}", self.name);
        perform(session, &self.id, (Edit::release_dns(&self.id, &self.name), Confirm::Never), self.consent, &done)
    }
}

fn perform(
    session: &Session,
    id: &str,
    (edit, confirm): (Edit, Confirm),
    consent: ConsentArgs,
    verb: &str,
) -> Result<ExitCode> {
    let name = session.cluster_type()?.name(id);
    let done = format!("{name} {verb}");
    // No suggestions: they would need the list of decommissioned clusters.
    consent.perform(session, ChangeRequest { edit, confirm, done, names: vec![name], named: Vec::new() })
}
