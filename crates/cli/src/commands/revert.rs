//! `revert`: a document says again what it said at a revision. That is a new change.

use std::process::ExitCode;

use api::TypeDescription;
use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{Asked, Consent, Deed},
    failure::{Failure, Result},
    session::Session,
};

#[derive(Args)]
pub(crate) struct Revert {
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
    /// What it said then [default: before its last change]
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
    #[command(flatten)]
    consent: Consent,
}

impl Revert {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        let to = self.to.map_or_else(|| self.before(session, ty), Ok)?;
        let (edit, name) = (Edit::revert(ty, &self.id, to), ty.name(&self.id));
        let done = format!("{name} says again what it said at revision {to}");
        let (asked, named) = (Asked::IfSomethingGoes, vec![(ty, self.id.as_str())]);
        self.consent.perform(session, Deed { edit, asked, done, names: vec![name], named })
    }

    /// The revision at which the document said what it said before its last change.
    fn before(&self, session: &Session, ty: &TypeDescription) -> Result<u64> {
        let history = session.about(ty, &self.id, session.client.history(ty, &self.id))?;
        let before = history.get(1).filter(|entry| entry.op.as_deref() == Some("put"));
        before.map(|entry| entry.heading.revision.0).ok_or_else(|| {
            let message = format!("before its last change, {}/{} was not there or not in force", ty.kind, self.id);
            Failure::failed(message).hint("flux-resourceset-cli history lists its states; --to says which is meant")
        })
    }
}
