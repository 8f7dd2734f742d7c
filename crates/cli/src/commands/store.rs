//! `store`: compares the served snapshot with the change log. `store accept`: makes the servers follow a change log
//! that diverged from the served snapshot, as after a failover that lost commits, or after a restored backup.
//!
//! Servers keep the served snapshot, so that no cluster loses inputs by accident. So an operator confirms the
//! acceptance after checking which inputs clusters would lose.

use std::process::ExitCode;

use api::{ChangeLogStatus, StoreState};
use clap::{Args, Subcommand};
use client::Edit;
use model::{Digest, Point};

use crate::{
    consent::{Confirm, ConsentArgs},
    failure::{CliError, CliErrorKind, Result},
    output::{CommandOutput, GOOD},
    session::Session,
    table::TextTable,
};

#[derive(Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: Option<StoreCommand>,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Follow a change log that diverged from the served snapshot; applies to all servers with the same snapshot
    Accept(AcceptLogArgs),
}

#[derive(Args)]
struct AcceptLogArgs {
    /// Digest of the snapshot of a read-only server, which cannot accept itself (picture.digest in store -o json)
    #[arg(long, value_name = "DIGEST")]
    served: Option<Digest>,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl StoreArgs {
    pub(crate) fn writes(&self) -> bool {
        self.command.is_some()
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        match &self.command {
            Some(StoreCommand::Accept(AcceptLogArgs { served, consent })) => accept(session, served.as_ref(), *consent),
            None => session.show_or_watch(false, || command_output(&session.client.store()?)),
        }
    }
}

fn accept(session: &Session, served: Option<&Digest>, consent: ConsentArgs) -> Result<ExitCode> {
    // A read-only server returns an error here that names the required API mode.
    session.types()?;
    let change = consent.confirm_and_retry(session, || {
        let (log, message) = diverged_log(&session.client.store()?, served)?;
        session.message(&message);
        Ok((Edit::accept_log(&log.digest, served), Confirm::Always))
    })?;
    if let Some(change) = change {
        let done = format!("the change log is accepted and followed (revision {})", change.revision);
        session.out.report_done(&done, &[change.revision.to_string()], &change.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The head of the diverged change log, and a message about it; an error if there is nothing to accept.
fn diverged_log(store: &StoreState, served: Option<&Digest>) -> Result<(Point, String)> {
    let refused = |why: &str| CliError::new(CliErrorKind::Conflict, format!("nothing to accept: {why}"));
    let served_revision = store.picture.revision;
    match (store.status, &store.log, served) {
        (ChangeLogStatus::Diverged, Some(log), _) if log.store != store.picture.store => {
            let message = format!(
                "the server serves revision {served_revision}; the store contains the change log of another fleet"
            );
            Ok((*log, message))
        }
        (ChangeLogStatus::Diverged, Some(log), _) => {
            let message = format!(
                "the server serves revision {served_revision}; the change log diverged from it and is at revision {}",
                log.revision
            );
            Ok((*log, message))
        }
        (ChangeLogStatus::Following, Some(log), Some(served)) => {
            let message = format!(
                "the change log is at revision {}; this server does not know which inputs the clusters of the server \
                 with snapshot {served} would lose",
                log.revision
            );
            Ok((*log, message))
        }
        (ChangeLogStatus::Following, ..) => Err(refused("this server follows the change log").hint(
            "if another server has diverged, run the command on that server (--api-url), \
             or give the digest of its snapshot with --served",
        )),
        _ => {
            Err(refused("this server cannot read the change log now")
                .hint("for details, run flux-resourceset-cli store"))
        }
    }
}

fn command_output(store: &StoreState) -> Result<CommandOutput> {
    let log = store.log.map_or_else(|| "cannot be read".to_owned(), |log| log.to_string());
    let facts = [
        ("status", store.status.to_string()),
        ("snapshot age", format!("{:.1} s", store.age_seconds)),
        ("served snapshot", store.picture.to_string()),
        ("change log", log),
    ];
    let table = advice(store).into_iter().fold(TextTable::default().facts(&facts), TextTable::note);
    Ok(CommandOutput { value: serde_json::to_value(store)?, names: vec![store.status.to_string()], table })
}

/// What the operator has to know and to do about the status.
fn advice(store: &StoreState) -> Vec<String> {
    let served = store.picture.revision;
    let unchanged = format!("Clusters still get revision {served}. Changes are refused.");
    let hint = |text: &str| format!("{GOOD}hint:{GOOD:#} {text}");
    match (store.status, &store.log) {
        (ChangeLogStatus::Diverged, Some(log)) if log.store != store.picture.store => vec![
            format!("The store contains the change log of another fleet. {unchanged}"),
            hint(
                "to restore a backup of this fleet, run flux-resourceset restore --replace FILE \
                 with the DATABASE_URL of the servers",
            ),
        ],
        (ChangeLogStatus::Diverged, log) => {
            let head = log.map_or_else(String::new, |log| format!(" and is at revision {}", log.revision));
            vec![
                format!("The change log diverged from the served snapshot{head}."),
                unchanged,
                hint(
                    "to follow the change log, run flux-resourceset-cli store accept; \
                     it first shows which inputs clusters would lose, and asks",
                ),
            ]
        }
        (ChangeLogStatus::Unavailable, _) => {
            vec![format!("The change log cannot be read. Clusters still get revision {served}.")]
        }
        _ => Vec::new(),
    }
}
