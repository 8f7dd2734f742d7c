//! `history`: the changes of a document, newest first.

use std::process::ExitCode;

use api::HistoryEntry;
use clap::Args;

use crate::{
    commands::changes::time, completion, failure::Result, output::CommandOutput, session::Session, table::TextTable,
};

#[derive(Args)]
pub(crate) struct HistoryArgs {
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
    /// Show the history again whenever it changes, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl HistoryArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        session.show_or_watch(self.watch, || {
            let entries = session.with_suggestion(ty, &self.id, session.client.history(ty, &self.id))?;
            let column = |cell: fn(&HistoryEntry) -> String| entries.iter().map(cell).collect::<Vec<_>>();
            let table = TextTable::default()
                .key("REVISION", column(|entry| entry.heading.revision.to_string()))
                .key("TIME", column(|entry| time(&entry.heading.at)))
                .column("ACTOR", column(|entry| entry.heading.actor.clone()))
                .column("OP", column(|entry| entry.op.clone().unwrap_or_default()))
                .column("REASON", column(|entry| entry.heading.reason.clone().unwrap_or_default()))
                .wide("REQUEST", column(|entry| entry.heading.request_id.clone().unwrap_or_default()));
            let names = entries.iter().map(|entry| entry.heading.revision.to_string()).collect();
            Ok(CommandOutput { value: serde_json::to_value(&entries)?, names, table })
        })
    }
}
