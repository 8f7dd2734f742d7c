//! `history`: the changes of a document, newest first.

use std::process::ExitCode;

use api::HistoryEntry;
use clap::Args;

use crate::{commands::changes::time, completion, failure::Result, output::Shown, session::Session, table::Table};

#[derive(Args)]
pub(crate) struct History {
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl History {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        session.present(self.watch, || {
            let entries = session.about(ty, &self.id, session.client.history(ty, &self.id))?;
            let column = |of: fn(&HistoryEntry) -> String| entries.iter().map(of).collect::<Vec<_>>();
            let table = Table::default()
                .key("REVISION", column(|entry| entry.heading.revision.to_string()))
                .key("TIME", column(|entry| time(&entry.heading.at)))
                .column("ACTOR", column(|entry| entry.heading.actor.clone()))
                .column("OP", column(|entry| entry.op.clone().unwrap_or_default()))
                .column("REASON", column(|entry| entry.heading.reason.clone().unwrap_or_default()))
                .wide("REQUEST", column(|entry| entry.heading.request_id.clone().unwrap_or_default()));
            let names = entries.iter().map(|entry| entry.heading.revision.to_string()).collect();
            Ok(Shown { value: serde_json::to_value(&entries)?, names, table })
        })
    }
}
