//! `delete`: a definition that nobody refers to goes; a cluster is decommissioned, which takes everything from it.

use std::process::ExitCode;

use api::BatchWrite;
use clap::Args;
use client::Edit;

use crate::{
    completion,
    consent::{Asked, Consent, Deed},
    failure::Result,
    session::Session,
};

#[derive(Args)]
pub(crate) struct Delete {
    /// Which
    #[arg(required = true, value_name = "ID", add = completion::of(completion::ids))]
    ids: Vec<String>,
    /// Take it away from every cluster that has it, in the same change
    #[arg(long)]
    cascade: bool,
    #[command(flatten)]
    consent: Consent,
}

impl Delete {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
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
        self.consent.perform(session, Deed { edit, asked: Asked::IfSomethingGoes, done, names, named })
    }
}
