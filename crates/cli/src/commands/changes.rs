//! `changes`: the audit trail: list, follow, show and revert changes.

use std::{process::ExitCode, thread, time::Duration};

use api::{ChangeSummary, Timestamp};
use clap::{Args, Subcommand};
use client::Edit;
use model::Value;

use crate::{
    commands::diff,
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::Result,
    output::{self, CommandOutput, OutputFormat},
    plan::shortened,
    session::Session,
    table::TextTable,
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChangesArgs {
    #[command(subcommand)]
    command: Option<ChangeCommand>,
    /// Show only changes of documents of this type
    #[arg(long, value_name = "TYPE", add = completion::completer(completion::types))]
    kind: Option<String>,
    /// Show only changes of documents with this id
    #[arg(long)]
    id: Option<String>,
    /// Show only changes by this actor
    #[arg(long)]
    actor: Option<String>,
    /// Show only changes at or after this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Show only changes before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Show only changes before this revision
    #[arg(long, value_name = "REVISION")]
    before: Option<u64>,
    /// Maximum number of changes, newest first
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Keep printing new changes of all documents, until interrupted
    #[arg(short, long, visible_alias = "watch", conflicts_with_all = ["kind", "id", "actor", "since", "until", "before"])]
    follow: bool,
}

#[derive(Subcommand)]
enum ChangeCommand {
    /// Show a change with the differences of each document
    Show {
        /// Revision of the change
        revision: u64,
    },
    /// Undo a change with a new change; refused if its documents were changed later
    Revert {
        /// Revision of the change
        revision: u64,
        #[command(flatten)]
        consent: ConsentArgs,
    },
}

impl ChangesArgs {
    pub(crate) fn writes(&self) -> bool {
        matches!(self.command, Some(ChangeCommand::Revert { .. }))
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        match &self.command {
            Some(ChangeCommand::Show { revision }) => show(session, *revision),
            Some(ChangeCommand::Revert { revision, consent }) => revert(session, *revision, *consent),
            None if self.follow => self.follow(session),
            None => self.list(session),
        }
    }

    fn list(&self, session: &Session) -> Result<ExitCode> {
        // The kind of a removed type still has changes.
        let kind = match &self.kind {
            Some(name) => Some(session.find_type(name)?.map_or_else(|| name.clone(), |ty| ty.kind.clone())),
            None => None,
        };
        let query = [
            ("kind", kind),
            ("id", self.id.clone()),
            ("actor", self.actor.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
            ("before", self.before.map(|before| before.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let query = query.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let changes = session.client.changes(&query.collect::<Vec<_>>())?;
        session.show_or_watch(false, || command_output(&changes))
    }

    /// Prints the last changes, oldest first, and then new ones. It reconnects after a lost connection; no change is
    /// printed twice or missed.
    fn follow(&self, session: &Session) -> Result<ExitCode> {
        let mut before = session.client.changes(&[("limit".to_owned(), self.limit.to_string())])?;
        before.reverse();
        let mut last = before.last().map_or(0, |change| change.heading.revision.0);
        if session.out.is_for_people() {
            session.out.show(&command_output(&before)?)?;
        } else {
            before.iter().try_for_each(|change| print_change(session, change))?;
        }
        loop {
            match session.client.follow(Some(last)) {
                // The server refuses to continue from this revision: a retry would not help.
                Err(error) if error.status().is_some_and(|status| status < 500 && status != 429) => {
                    return Err(error.into());
                }
                Err(error) => session.message(&error.to_string()),
                Ok(changes) => {
                    // A stream that ends is continued after the last printed revision.
                    for change in
                        changes.map_while(|change| change.inspect_err(|error| report_invalid(session, error)).ok())
                    {
                        print_change(session, &change)?;
                        last = change.heading.revision.0;
                    }
                }
            }
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Reports an answer that cannot be parsed. An interrupted stream is expected and not reported.
fn report_invalid(session: &Session, error: &client::ClientError) {
    if matches!(error, client::ClientError::Strange { .. }) {
        session.message(&error.to_string());
    }
}

/// Prints one change as one line.
fn print_change(session: &Session, change: &ChangeSummary) -> Result<()> {
    match session.out.format {
        OutputFormat::Json => output::print(&format!("{}\n", serde_json::to_string(change)?)),
        OutputFormat::Yaml => output::print(&format!("---\n{}", output::as_yaml(&serde_json::to_value(change)?)?)),
        OutputFormat::Name => output::print(&format!("{}\n", change.heading.revision)),
        OutputFormat::Table | OutputFormat::Wide => {
            let ChangeSummary { heading, .. } = change;
            let reason = heading.reason.as_deref().unwrap_or_default();
            let line = format!(
                "{:<8}  {}  {}  {}  {reason}",
                heading.revision,
                time(&heading.at),
                heading.actor,
                documents(change, 3)
            );
            output::print(&format!("{}\n", line.trim_end()))
        }
    }
}

fn command_output(changes: &[ChangeSummary]) -> Result<CommandOutput> {
    let column = |cell: fn(&ChangeSummary) -> String| changes.iter().map(cell).collect::<Vec<_>>();
    let table = TextTable::default()
        .key("REVISION", column(|change| change.heading.revision.to_string()))
        .key("TIME", column(|change| time(&change.heading.at)))
        .column("ACTOR", column(|change| change.heading.actor.clone()))
        .column("DOCUMENTS", column(|change| documents(change, 1)))
        .column("REASON", column(|change| change.heading.reason.clone().unwrap_or_default()))
        .wide("REQUEST", column(|change| change.heading.request_id.clone().unwrap_or_default()));
    let names = column(|change| change.heading.revision.to_string());
    Ok(CommandOutput { value: serde_json::to_value(changes)?, names, table })
}

/// The documents that a change wrote: the first ones, and how many more.
fn documents(change: &ChangeSummary, most: usize) -> String {
    let name = |write: &api::WriteSummary| match write.op.as_str() {
        "put" => format!("{}/{}", write.kind, write.id),
        _ => format!("-{}/{}", write.kind, write.id),
    };
    let (named, total) = (change.writes.len(), change.total.unwrap_or_default());
    // For a large change, the server names only the first documents.
    let unnamed = (named..total).map(|_| String::new());
    shortened(&change.writes.iter().map(name).chain(unnamed).collect::<Vec<_>>(), most)
}

/// A time to the second.
pub(crate) fn time(at: &Timestamp) -> String {
    let at = at.to_string();
    let seconds = at.split_once('.').map_or(at.trim_end_matches('Z'), |(seconds, _)| seconds);
    format!("{}Z", seconds.replace('T', " "))
}

fn show(session: &Session, revision: u64) -> Result<ExitCode> {
    let change = session.client.change(revision)?;
    let mut text = format!("revision {} at {} by {}\n", revision, time(&change.heading.at), change.heading.actor);
    text.extend(change.heading.reason.iter().map(|reason| format!("reason   {reason}\n")));
    text.extend(change.heading.request_id.iter().map(|id| format!("request  {id}\n")));
    for write in &change.writes {
        let object = |value: &Option<Value>| value.as_ref().and_then(Value::as_object).cloned();
        let (before, after) = (object(&write.before), object(&write.after));
        // A tombstone still contains the last content of the document.
        let after = after.filter(|_| write.op == "put");
        let after = match (&before, after) {
            (Some(before), Some(after)) => Some(diff::ordered_like(before, &after)),
            (_, after) => after,
        };
        let name = format!("{}/{}", write.kind, write.id);
        text += &diff::text((&format!("before/{name}"), before.as_ref()), (&format!("after/{name}"), after.as_ref()))?;
    }
    let names = change.writes.iter().map(|write| format!("{}/{}", write.kind, write.id)).collect();
    let value = serde_json::to_value(&change)?;
    session.show_or_watch(false, || {
        Ok(CommandOutput {
            value: value.clone(),
            names: Vec::clone(&names),
            table: TextTable::default().note(text.trim_end()),
        })
    })
}

fn revert(session: &Session, revision: u64, consent: ConsentArgs) -> Result<ExitCode> {
    let (edit, done) = (Edit::revert_change(revision), format!("change {revision} reverted"));
    let (confirm, names) = (Confirm::OnLoss, vec![revision.to_string()]);
    consent.perform(session, ChangeRequest { edit, confirm, done, names, named: Vec::new() })
}
