//! `store`: what is served, and what the log says. `store accept`: the log is followed, though it does not continue what
//! is served, as after a failover that lost commits, or over a backup that was put back.
//!
//! Servers hold on to what they serve, so that no cluster loses anything by accident. So this is agreed to by a person
//! who has seen what clusters would lose.

use std::process::ExitCode;

use api::{ChangeLogStatus, StoreState};
use clap::{Args, Subcommand};
use client::Edit;
use model::{Digest, Point};

use crate::{
    consent::{Asked, Consent},
    failure::{Failure, Outcome, Result},
    output::{GOOD, Shown},
    session::Session,
    table::Table,
};

#[derive(Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    deed: Option<Deed>,
}

#[derive(Subcommand)]
enum Deed {
    /// Follow the log, though it does not continue what is served; all servers do that serve the same
    Accept(Accept),
}

#[derive(Args)]
struct Accept {
    /// The digest of what another server serves that takes no word itself, since it only answers polls
    #[arg(long, value_name = "DIGEST")]
    served: Option<Digest>,
    #[command(flatten)]
    consent: Consent,
}

impl Store {
    pub(crate) fn writes(&self) -> bool {
        self.deed.is_some()
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        match &self.deed {
            Some(Deed::Accept(Accept { served, consent })) => accept(session, served.as_ref(), *consent),
            None => session.present(false, || shown(&session.client.store()?)),
        }
    }
}

fn accept(session: &Session, served: Option<&Digest>, consent: Consent) -> Result<ExitCode> {
    // A server that only answers polls says how to get one that takes a word.
    session.types()?;
    let made = consent.carry_out_anew(session, || {
        let (log, told) = apart(&session.client.store()?, served)?;
        session.say(&told);
        Ok((Edit::accept_log(&log.digest, served), Asked::Regardless))
    })?;
    if let Some(made) = made {
        let done = format!("the log is accepted, and followed from here (revision {})", made.revision);
        session.out.done(&done, &[made.revision.to_string()], &made.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The log, and how far it is from what is served; refused where that is no matter of a word.
fn apart(store: &StoreState, served: Option<&Digest>) -> Result<(Point, String)> {
    let refused = |why: &str| Failure::new(Outcome::Conflict, format!("{why}: there is nothing to accept"));
    let here = store.picture.revision;
    match (store.status, &store.log, served) {
        (ChangeLogStatus::Diverged, Some(log), _) if log.store != store.picture.store => {
            Ok((*log, format!("revision {here} is served, and the log is that of another fleet")))
        }
        (ChangeLogStatus::Diverged, Some(log), _) => {
            let at = log.revision;
            Ok((
                *log,
                format!("revision {here} is served, and the log, which does not continue it, is at revision {at}"),
            ))
        }
        (ChangeLogStatus::Following, Some(log), Some(served)) => {
            let told = format!(
                "the log is at revision {}; what is lost by the server at {served} is not known here",
                log.revision
            );
            Ok((*log, told))
        }
        (ChangeLogStatus::Following, ..) => Err(refused("this server follows the log").hint(
            "if another server says that it has diverged, ask that one (--api-url), or tell by --served what it serves",
        )),
        _ => Err(refused("this server cannot read the log at the moment").hint("flux-resourceset-cli store says more")),
    }
}

fn shown(store: &StoreState) -> Result<Shown> {
    let log = store.log.map_or_else(|| "cannot be read".to_owned(), |log| log.to_string());
    let told = [
        ("status", store.status.to_string()),
        ("age of the picture", format!("{:.1} s", store.age_seconds)),
        ("served", store.picture.to_string()),
        ("log", log),
    ];
    let table = advice(store).into_iter().fold(Table::default().facts(&told), Table::note);
    Ok(Shown { value: serde_json::to_value(store)?, names: vec![store.status.to_string()], table })
}

/// What a person has to know and to do, if there is anything.
fn advice(store: &StoreState) -> Vec<String> {
    let served = store.picture.revision;
    let hint = |text: &str| format!("{GOOD}hint:{GOOD:#} {text}");
    match (store.status, &store.log) {
        (ChangeLogStatus::Diverged, Some(log)) if log.store != store.picture.store => vec![
            format!("The log is that of another fleet. Clusters still get revision {served}. No change is taken."),
            hint("put a backup back: flux-resourceset restore --replace FILE, with the DATABASE_URL of the servers"),
        ],
        (ChangeLogStatus::Diverged, log) => {
            let at = log.map_or_else(String::new, |log| format!(", at revision {},", log.revision));
            vec![
                format!("The log{at} does not continue what is served."),
                format!("Clusters still get revision {served}. No change is taken."),
                hint("flux-resourceset-cli store accept shows what clusters would lose, asks, and follows the log"),
            ]
        }
        (ChangeLogStatus::Unavailable, _) => {
            vec![format!("The log cannot be read. Clusters still get revision {served}.")]
        }
        _ => Vec::new(),
    }
}
