//! `list` and `get`: documents of one type.

use std::process::ExitCode;

use clap::Args;

use crate::{
    completion,
    documents::{self, ListScope},
    failure::Result,
    selector::Selector,
    session::Session,
};

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Show only documents that match all fields and labels, such as environment=dev,region=eu
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
    /// Show decommissioned clusters instead of active ones
    #[arg(long)]
    decommissioned: bool,
    /// Show the documents as they were at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show the list again whenever it changes, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl ListArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let mut query = self.selector.as_ref().map(|selector| selector.query(ty)).unwrap_or_default();
        query.extend(self.decommissioned.then(|| ("decommissioned".to_owned(), "true".to_owned())));
        query.extend(self.revision.map(|revision| ("revision".to_owned(), revision.to_string())));
        let scope = if query.is_empty() { ListScope::All } else { ListScope::Filtered };
        session.show_or_watch(self.watch, || Ok(documents::command_output(ty, session.client.list(ty, &query)?, scope)))
    }
}

#[derive(Args)]
pub(crate) struct GetArgs {
    /// Ids of the documents [default: all]
    #[arg(value_name = "ID", add = completion::completer(completion::ids))]
    ids: Vec<String>,
    /// Show the documents as they were at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show the documents again whenever they change, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl GetArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        if self.ids.is_empty() {
            let (revision, watch) = (self.revision, self.watch);
            return ListArgs { selector: None, decommissioned: false, revision, watch }.run(session, ty);
        }
        let ty = session.resource_type(ty)?;
        session.show_or_watch(self.watch, || {
            let get = |id: &String| {
                let document = session.with_suggestion(ty, id, session.client.get(ty, id, self.revision));
                document.map(|document| document.body)
            };
            Ok(documents::command_output(ty, self.ids.iter().map(get).collect::<Result<_>>()?, ListScope::ById))
        })
    }
}
