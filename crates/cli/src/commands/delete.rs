//! `delete`: a definition that nobody refers to goes; a cluster is decommissioned, which takes everything from it.

use std::process::ExitCode;

use clap::Args;
use client::{BatchWrite, Edit};

use crate::{
    completion,
    consent::{Asked, Consent},
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
                Edit::batch(&several.iter().map(delete).collect::<Vec<_>>())
            }
        };
        let made = self.consent.carry_out(session, &edit, Asked::IfSomethingGoes);
        let named = || self.ids.iter().map(|id| (ty, id.as_str()));
        if let Some(made) = made.map_err(|failure| session.missing(failure, named()))? {
            let names: Vec<_> = self.ids.iter().map(|id| format!("{}/{id}", ty.kind)).collect();
            let verb = if ty.is_cluster() { "decommissioned" } else { "deleted" };
            let sentence = format!("{} {verb} (revision {})", names.join(", "), made.revision);
            session.out.done(&sentence, &names, &made.body)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
