//! `changes`: the audit trail, and what can be done with one change of it.

use std::{process::ExitCode, thread, time::Duration};

use api::{ChangeSummary, Timestamp};
use clap::{Args, Subcommand};
use client::Edit;
use model::Value;

use crate::{
    commands::diff,
    completion,
    consent::{Asked, Consent, Deed},
    failure::Result,
    output::{self, Format, Shown},
    plan::shortened,
    session::Session,
    table::Table,
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Changes {
    #[command(subcommand)]
    one: Option<One>,
    /// Only changes of documents of this type
    #[arg(long, value_name = "TYPE", add = completion::of(completion::types))]
    kind: Option<String>,
    /// Only changes of documents of this id
    #[arg(long)]
    id: Option<String>,
    /// Only changes by this actor
    #[arg(long)]
    actor: Option<String>,
    /// Only changes at or after this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only changes before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only changes before this revision
    #[arg(long, value_name = "REVISION")]
    before: Option<u64>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20)]
    limit: u32,
    /// Go on with the changes that come; all of them, whatever they change
    #[arg(short, long, visible_alias = "watch", conflicts_with_all = ["kind", "id", "actor", "since", "until", "before"])]
    follow: bool,
}

#[derive(Subcommand)]
enum One {
    /// One change, with what it did to every document
    Show {
        /// Which
        revision: u64,
    },
    /// Undo a change by a new one; refused if its documents were changed since
    Revert {
        /// Which
        revision: u64,
        #[command(flatten)]
        consent: Consent,
    },
}

impl Changes {
    pub(crate) fn writes(&self) -> bool {
        matches!(self.one, Some(One::Revert { .. }))
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        match &self.one {
            Some(One::Show { revision }) => show(session, *revision),
            Some(One::Revert { revision, consent }) => revert(session, *revision, *consent),
            None if self.follow => self.follow(session),
            None => self.list(session),
        }
    }

    fn list(&self, session: &Session) -> Result<ExitCode> {
        // A kind that no type declares any more still has its changes.
        let kind = match &self.kind {
            Some(name) => Some(session.known(name)?.map_or_else(|| name.clone(), |ty| ty.kind.clone())),
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
        session.present(false, || shown(&changes))
    }

    /// The last changes, oldest first, and then those that come. A connection that is lost is made again, and nothing is
    /// told twice or missed.
    fn follow(&self, session: &Session) -> Result<ExitCode> {
        let mut before = session.client.changes(&[("limit".to_owned(), self.limit.to_string())])?;
        before.reverse();
        let mut last = before.last().map_or(0, |change| change.heading.revision.0);
        if session.out.is_for_people() {
            session.out.show(&shown(&before)?)?;
        } else {
            before.iter().try_for_each(|change| tell(session, change))?;
        }
        loop {
            match session.client.follow(Some(last)) {
                // Nothing that was told before could be followed from here.
                Err(error) if error.status().is_some_and(|status| status < 500 && status != 429) => {
                    return Err(error.into());
                }
                Err(error) => session.say(&error.to_string()),
                Ok(changes) => {
                    // A stream that breaks off is taken up again where it was.
                    for change in changes.map_while(|change| change.inspect_err(|error| said(session, error)).ok()) {
                        tell(session, &change)?;
                        last = change.heading.revision.0;
                    }
                }
            }
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// That a stream breaks off now and then is nothing to talk about; that it cannot be understood is.
fn said(session: &Session, error: &client::ClientError) {
    if matches!(error, client::ClientError::Strange { .. }) {
        session.say(&error.to_string());
    }
}

/// One change on one line.
fn tell(session: &Session, change: &ChangeSummary) -> Result<()> {
    match session.out.format {
        Format::Json => output::print(&format!("{}\n", serde_json::to_string(change)?)),
        Format::Yaml => output::print(&format!("---\n{}", output::as_yaml(&serde_json::to_value(change)?)?)),
        Format::Name => output::print(&format!("{}\n", change.heading.revision)),
        Format::Table | Format::Wide => {
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

fn shown(changes: &[ChangeSummary]) -> Result<Shown> {
    let column = |of: fn(&ChangeSummary) -> String| changes.iter().map(of).collect::<Vec<_>>();
    let table = Table::default()
        .key("REVISION", column(|change| change.heading.revision.to_string()))
        .key("TIME", column(|change| time(&change.heading.at)))
        .column("ACTOR", column(|change| change.heading.actor.clone()))
        .column("DOCUMENTS", column(|change| documents(change, 1)))
        .column("REASON", column(|change| change.heading.reason.clone().unwrap_or_default()))
        .wide("REQUEST", column(|change| change.heading.request_id.clone().unwrap_or_default()));
    let names = column(|change| change.heading.revision.to_string());
    Ok(Shown { value: serde_json::to_value(changes)?, names, table })
}

/// What a change wrote: the first few, and how many more.
fn documents(change: &ChangeSummary, most: usize) -> String {
    let name = |write: &api::WriteSummary| match write.op.as_str() {
        "put" => format!("{}/{}", write.kind, write.id),
        _ => format!("-{}/{}", write.kind, write.id),
    };
    let (named, total) = (change.writes.len(), change.total.unwrap_or_default());
    // Of a large change the server names only the first ones.
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
        // A tombstone still says what it said.
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
    session.present(false, || {
        Ok(Shown { value: value.clone(), names: Vec::clone(&names), table: Table::default().note(text.trim_end()) })
    })
}

fn revert(session: &Session, revision: u64, consent: Consent) -> Result<ExitCode> {
    let (edit, done) = (Edit::revert_change(revision), format!("change {revision} is undone"));
    let (asked, names) = (Asked::IfSomethingGoes, vec![revision.to_string()]);
    consent.perform(session, Deed { edit, asked, done, names, named: Vec::new() })
}
