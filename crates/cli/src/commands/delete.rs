//! `delete`: deletes definitions that no document refers to; decommissions clusters, which removes all their inputs.

use std::process::ExitCode;

use api::BatchWrite;
use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::Result,
    session::Session,
};

#[derive(Args)]
pub(crate) struct DeleteArgs {
    /// Ids of the documents
    #[arg(required = true, value_name = "ID", add = completion::completer(completion::ids))]
    ids: Vec<String>,
    /// Also remove the documents from all clusters that have them, in the same change
    #[arg(long)]
    cascade: bool,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl DeleteArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let edit = match self.ids.as_slice() {
            [only] => Edit::delete(ty, only, self.cascade),
            several => {
                let (kind, cascade) = (&ty.kind, self.cascade);
                let delete = |id: &String| BatchWrite::Delete { kind: kind.clone(), id: id.clone(), cascade };
                Edit::batch(several.iter().map(delete).collect())
            }
        };
        let names: Vec<_> = self.ids.iter().map(|id| ty.name(id)).collect();
        let verb = if ty.is_cluster() { "decommissioned" } else { "deleted" };
        let done = format!("{} {verb}", names.join(", "));
        let named = self.ids.iter().map(|id| (ty, id.as_str())).collect();
        self.consent.perform(session, ChangeRequest { edit, confirm: Confirm::OnLoss, done, names, named })
    }
}
