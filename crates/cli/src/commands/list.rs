//! `list` and `get`.

use std::process::ExitCode;

use clap::Args;

use crate::{
    completion,
    documents::{self, Asked},
    failure::Result,
    selector::Selector,
    session::Session,
};

#[derive(Args)]
pub(crate) struct List {
    /// Only those for which all of this holds: fields and labels, as environment=dev,region=eu
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
    /// The decommissioned clusters instead of those in force
    #[arg(long)]
    decommissioned: bool,
    /// As they were at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show the list again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl List {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        let mut query = self.selector.as_ref().map(|selector| selector.query(ty)).unwrap_or_default();
        query.extend(self.decommissioned.then(|| ("decommissioned".to_owned(), "true".to_owned())));
        query.extend(self.revision.map(|revision| ("revision".to_owned(), revision.to_string())));
        let asked = if query.is_empty() { Asked::All } else { Asked::Some };
        session.present(self.watch, || Ok(documents::shown(ty, session.client.list(ty, &query)?, asked)))
    }
}

#[derive(Args)]
pub(crate) struct Get {
    /// Which; all of them, if none is named
    #[arg(value_name = "ID", add = completion::of(completion::ids))]
    ids: Vec<String>,
    /// As it was at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl Get {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        if self.ids.is_empty() {
            let (revision, watch) = (self.revision, self.watch);
            return List { selector: None, decommissioned: false, revision, watch }.run(session, ty);
        }
        let ty = session.ty(ty)?;
        session.present(self.watch, || {
            let get = |id: &String| {
                let document = session.about(ty, id, session.client.get(ty, id, self.revision));
                document.map(|document| document.body)
            };
            Ok(documents::shown(ty, self.ids.iter().map(get).collect::<Result<_>>()?, Asked::ById))
        })
    }
}
