//! `revert`: sets a document back to its content at an earlier revision, with a new change.

use std::process::ExitCode;

use api::TypeDescription;
use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::{CliError, Result},
    session::Session,
};

#[derive(Args)]
pub(crate) struct RevertArgs {
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
    /// Revision whose content is restored [default: the one before the last change of the document]
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl RevertArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let to = self.to.map_or_else(|| self.previous_revision(session, ty), Ok)?;
        let (edit, name) = (Edit::revert(ty, &self.id, to), ty.name(&self.id));
        let done = format!("{name} reverted to its content at revision {to}");
        let (confirm, named) = (Confirm::OnLoss, vec![(ty, self.id.as_str())]);
        self.consent.perform(session, ChangeRequest { edit, confirm, done, names: vec![name], named })
    }

    /// The revision of the document before its last change.
    fn previous_revision(&self, session: &Session, ty: &TypeDescription) -> Result<u64> {
        let history = session.with_suggestion(ty, &self.id, session.client.history(ty, &self.id))?;
        let before = history.get(1).filter(|entry| entry.op.as_deref() == Some("put"));
        before.map(|entry| entry.heading.revision.0).ok_or_else(|| {
            let message = format!(
                "{}/{} has no content before its last change: it did not exist, or was decommissioned",
                ty.kind, self.id
            );
            CliError::failed(message).hint(format!(
                "select a revision with --to; to list them, run flux-resourceset-cli history {} {}",
                ty.kind, self.id
            ))
        })
    }
}
