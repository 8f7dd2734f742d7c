//! `apply`: the fleet says what files say, as one change.
//!
//! What is sent is what differs, as one batch, so applying what is there already is no change at all. A document says what
//! its file says and no more; what no file names is left alone, unless `--prune` says which of it should go.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use client::{BatchWrite, Edit};
use model::{FieldError, Map, Value};

use crate::{
    consent::{Asked, Consent},
    documents,
    failure::{Failure, Outcome, Result, broken_rule},
    files::{self, Found},
    output::{self, BAD, CHANGED, GOOD},
    plan::counted,
    selector::Selector,
    session::Session,
};

#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    desired: Desired,
    #[command(flatten)]
    consent: Consent,
}

/// What the fleet should say.
#[derive(Args)]
pub(crate) struct Desired {
    /// A file or a folder of documents in YAML or JSON; - is standard input; may stand several times
    #[arg(short, long = "file", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Delete what the selector takes and no file names, of the types that the files have; a cluster is decommissioned
    #[arg(long, requires = "selector")]
    prune: bool,
    /// What may be pruned, as environment=dev,region=eu
    #[arg(short = 'l', long, requires = "prune", value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
}

/// How a document differs from the fleet.
pub(crate) enum Difference<'a> {
    Created(&'a Found<'a>),
    /// A cluster that was decommissioned.
    Restored(&'a Found<'a>),
    Changed(&'a Found<'a>, Map),
    Pruned(&'a client::ResourceType, Map),
}

impl Difference<'_> {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Created(found) | Self::Restored(found) | Self::Changed(found, _) => found.name(),
            Self::Pruned(ty, document) => documents::name(ty, document),
        }
    }

    fn write(&self) -> BatchWrite {
        match self {
            Self::Created(found) | Self::Restored(found) | Self::Changed(found, _) => {
                BatchWrite::Put { kind: found.ty.kind.clone(), id: found.id.clone(), body: found.body.clone() }
            }
            Self::Pruned(ty, document) => {
                BatchWrite::Delete { kind: ty.kind.clone(), id: documents::id(document).to_owned(), cascade: false }
            }
        }
    }
}

/// Where files and the fleet differ, and how many documents are the same.
pub(crate) struct Comparison<'a> {
    pub(crate) differences: Vec<Difference<'a>>,
    pub(crate) same: usize,
}

impl Desired {
    /// Reads the files.
    pub(crate) fn read<'a>(&self, session: &'a Session) -> Result<Vec<Found<'a>>> {
        let bar = session.counting("reading", 0);
        files::read(&self.files, session.types()?, |at, all| {
            bar.set_length(all);
            bar.set_position(at);
        })
    }

    /// Compares what files say with the fleet.
    pub(crate) fn compare<'a>(&self, session: &'a Session, found: &'a [Found<'a>]) -> Result<Comparison<'a>> {
        let types = session.types()?;
        let _working = session.working("comparing with the fleet");
        let mut fleet: BTreeMap<&str, BTreeMap<String, Map>> = BTreeMap::new();
        for ty in types.iter().filter(|ty| found.iter().any(|document| document.ty.kind == ty.kind)) {
            let documents = session.client.list(ty, &[])?.into_iter();
            fleet.insert(&ty.kind, documents.map(|document| (documents::id(&document).to_owned(), document)).collect());
        }
        let clusters = session.clusters()?;
        let decommissioned = if fleet.contains_key(clusters.kind.as_str()) {
            session.client.list(clusters, &[("decommissioned".to_owned(), "true".to_owned())])?
        } else {
            Vec::new()
        };
        let was_decommissioned = |document: &Found<'_>| {
            document.ty.is_cluster() && decommissioned.iter().any(|known| documents::id(known) == document.id)
        };
        let pruned = self.pruned(session, found)?;
        let mut comparison = Comparison { differences: Vec::new(), same: 0 };
        for document in found {
            match fleet.get_mut(document.ty.kind.as_str()).and_then(|known| known.remove(&document.id)) {
                None if was_decommissioned(document) => comparison.differences.push(Difference::Restored(document)),
                None => comparison.differences.push(Difference::Created(document)),
                Some(known) if without_server_owned(document, &known) == document.body => comparison.same += 1,
                Some(known) => comparison.differences.push(Difference::Changed(document, known)),
            }
        }
        comparison.differences.extend(referrers_first(pruned));
        Ok(comparison)
    }

    fn pruned<'a>(&self, session: &'a Session, found: &[Found<'_>]) -> Result<Vec<Difference<'a>>> {
        let Some(selector) = &self.selector else { return Ok(Vec::new()) };
        let named: BTreeSet<_> = found.iter().map(Found::name).collect();
        let mut pruned = Vec::new();
        for ty in session.types()?.iter().filter(|ty| found.iter().any(|document| document.ty.kind == ty.kind)) {
            let documents = session.client.list(ty, &selector.query(ty))?.into_iter();
            let unnamed = documents.filter(|document| !named.contains(&documents::name(ty, document)));
            pruned.extend(unnamed.map(|document| Difference::Pruned(ty, document)));
        }
        Ok(pruned)
    }

    fn named(&self) -> String {
        self.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// A document of the fleet without the fields that only the server writes and the file leaves out.
fn without_server_owned(file: &Found<'_>, known: &Map) -> Map {
    let is_server_owned = |name: &str| file.ty.field(name).is_some_and(|field| field["readOnly"] == true);
    let kept = |(name, _): &(&String, &Value)| file.body.contains_key(*name) || !is_server_owned(name);
    known.iter().filter(kept).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Apply {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let found = self.desired.read(session)?;
        let mut differences = Vec::new();
        let made = self.consent.carry_out_anew(session, || {
            // What is compared is what is planned: the plan is refused if the fleet has moved on by then.
            let ready = session.client.ready()?;
            let comparison = self.desired.compare(session, &found)?;
            self.tell(session, &comparison);
            differences = comparison.differences;
            let writes: Vec<_> = differences.iter().map(Difference::write).collect();
            let restores = differences.iter().any(|difference| matches!(difference, Difference::Restored(_)));
            let asked = if self.desired.prune || restores { Asked::Always } else { Asked::IfSomethingGoes };
            Ok((Edit::batch(&writes).on(ready.revision, ready.epoch), asked))
        });
        let Some(made) = made.map_err(|failure| placed(failure, &differences))? else { return Ok(ExitCode::SUCCESS) };
        let names: Vec<_> = differences.iter().map(Difference::name).collect();
        let sentence = match differences.len() {
            0 => format!("nothing to change (revision {})", made.revision),
            count => format!("{} applied as revision {}", counted(count, "document"), made.revision),
        };
        if session.out.is_for_people() {
            output::print(&differences.iter().map(line).collect::<String>())?;
        }
        session.out.done(&sentence, &names, &made.body)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Says what is about to be planned.
    fn tell(&self, session: &Session, Comparison { differences, same }: &Comparison<'_>) {
        let pruned = differences.iter().filter(|difference| matches!(difference, Difference::Pruned(..))).count();
        let differ = differences.len() - pruned;
        let (all, named) = (counted(differ + same, "document"), self.desired.named());
        session.say(&format!("{all} in {named}: {differ} to write, {same} as they are, {pruned} to prune"));
        let restored = differences.iter().filter(|difference| matches!(difference, Difference::Restored(_)));
        let restored: Vec<_> = restored.map(Difference::name).collect();
        if !restored.is_empty() {
            output::talk(&format!("{} would be put in force again: decommissioned so far", restored.join(", ")));
        }
    }
}

/// In the order in which they can go: clusters before what only they had, and what depends on something before that.
fn referrers_first(pruned: Vec<Difference<'_>>) -> Vec<Difference<'_>> {
    let dependencies = |difference: &Difference<'_>| match difference {
        Difference::Pruned(_, document) => document.get("depends_on").and_then(Value::as_array).cloned(),
        _ => None,
    };
    let name_of = |difference: &Difference<'_>| match difference {
        Difference::Pruned(_, document) => documents::id(document).to_owned(),
        other => other.name(),
    };
    let is_needed = |id: &str, by: &[Difference<'_>]| by.iter().filter_map(dependencies).flatten().any(|on| on == id);
    let needed: BTreeSet<_> = pruned.iter().filter_map(dependencies).flatten().map(|on| on.to_string()).collect();
    // Most of them nothing depends on.
    let (mut left, mut ordered): (Vec<_>, Vec<_>) =
        pruned.into_iter().partition(|difference| needed.contains(&Value::from(name_of(difference)).to_string()));
    while !left.is_empty() {
        // In a circle, any is as good as another: the server says no.
        let free = left.iter().position(|difference| !is_needed(&name_of(difference), &left));
        ordered.push(left.remove(free.unwrap_or(0)));
    }
    ordered
}

fn line(difference: &Difference<'_>) -> String {
    let (style, verb) = match difference {
        Difference::Created(_) => (GOOD, "created"),
        Difference::Restored(_) => (CHANGED, "put in force again"),
        Difference::Changed(..) => (CHANGED, "changed"),
        Difference::Pruned(ty, _) if ty.is_cluster() => (BAD, "decommissioned"),
        Difference::Pruned(..) => (BAD, "deleted"),
    };
    format!("{} {style}{verb}{style:#}\n", difference.name())
}

/// Says of every broken rule in which file and line it was broken.
fn placed(failure: Failure, differences: &[Difference<'_>]) -> Failure {
    let origin = |difference: &Difference<'_>, pointer: &str| match difference {
        Difference::Created(found) | Difference::Restored(found) | Difference::Changed(found, _) => {
            Some(found.origin.place(pointer))
        }
        Difference::Pruned(..) => None,
    };
    let of = |error: &FieldError| {
        let mut error = error.clone();
        let by_place = error.pointer.strip_prefix("/writes/").and_then(|rest| {
            let (at, pointer) =
                rest.split_once('/').map_or((rest, String::new()), |(at, rest)| (at, format!("/{rest}")));
            Some((differences.get(at.parse::<usize>().ok()?)?, pointer))
        });
        let by_name = || {
            let name = error.document.as_ref()?;
            Some((differences.iter().find(|difference| difference.name() == *name)?, error.pointer.clone()))
        };
        let Some((difference, pointer)) = by_place.or_else(by_name) else { return broken_rule(&error) };
        let place = origin(difference, &pointer);
        let name = difference.name();
        // Of a definition that cannot go, the error names who refers to it.
        let named = error.document.filter(|document| *document != name);
        error.document = Some(named.map_or_else(|| name.clone(), |other| format!("{name}: {other}")));
        error.pointer = pointer;
        place.map_or_else(|| broken_rule(&error), |place| format!("{place}: {}", broken_rule(&error)))
    };
    let details: Vec<_> = failure.errors.iter().map(of).collect();
    match details.as_slice() {
        // A rule that is broken alone is the sentence itself; what is in the way of a delete is a detail.
        [only] if failure.is(Outcome::Failed) => failure.sentence(only.clone()),
        _ => failure.details(details),
    }
}
