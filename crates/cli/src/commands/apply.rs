//! `apply`: makes the fleet match files, as one change.
//!
//! Only documents that differ are sent, as one batch, so applying unchanged files makes no change. A document is
//! replaced by the content of its file. Documents without a file are not touched, except those that `--prune` selects.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use api::BatchWrite;
use clap::Args;
use client::Edit;
use model::{FieldError, Map, Value};

use crate::{
    consent::{Confirm, ConsentArgs},
    documents,
    failure::{CliError, CliErrorKind, Result, broken_rule},
    files::{self, FileDocument},
    output::{self, BAD, CHANGED, GOOD},
    plan::counted,
    selector::Selector,
    session::Session,
};

#[derive(Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    desired: DesiredState,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// The files, and what to prune.
#[derive(Args)]
pub(crate) struct DesiredState {
    /// File or folder with documents in YAML or JSON; - is standard input; repeat the flag for several files
    #[arg(short, long = "file", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Delete documents that match --selector and are in no file; only types that occur in the files; clusters are
    /// decommissioned
    #[arg(long, requires = "selector")]
    prune: bool,
    /// Select the documents that --prune may delete, such as environment=dev,region=eu
    #[arg(short = 'l', long, requires = "prune", value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
}

/// How a document of the files differs from the fleet.
pub(crate) enum DocumentDifference<'a> {
    Created(&'a FileDocument<'a>),
    /// A cluster that was decommissioned.
    Restored(&'a FileDocument<'a>),
    Changed(&'a FileDocument<'a>, Map),
    Pruned(&'a api::TypeDescription, Map),
}

impl DocumentDifference<'_> {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Created(file) | Self::Restored(file) | Self::Changed(file, _) => file.name(),
            Self::Pruned(ty, document) => documents::name(ty, document),
        }
    }

    fn write(&self) -> BatchWrite {
        match self {
            Self::Created(file) | Self::Restored(file) | Self::Changed(file, _) => {
                BatchWrite::Put { kind: file.ty.kind.clone(), id: file.id.clone(), body: file.body.clone() }
            }
            Self::Pruned(ty, document) => {
                BatchWrite::Delete { kind: ty.kind.clone(), id: documents::id(document).to_owned(), cascade: false }
            }
        }
    }
}

/// The differences between files and the fleet, and the number of equal documents.
pub(crate) struct Comparison<'a> {
    pub(crate) differences: Vec<DocumentDifference<'a>>,
    pub(crate) same: usize,
}

impl DesiredState {
    /// Reads the files.
    pub(crate) fn read<'a>(&self, session: &'a Session) -> Result<Vec<FileDocument<'a>>> {
        let bar = session.progress_bar("reading", 0);
        files::read(&self.files, session.types()?, |at, all| {
            bar.set_length(all);
            bar.set_position(at);
        })
    }

    /// Compares the files with the fleet.
    pub(crate) fn compare<'a>(
        &self,
        session: &'a Session,
        file_documents: &'a [FileDocument<'a>],
    ) -> Result<Comparison<'a>> {
        let types = session.types()?;
        let _spinner = session.spinner("comparing with the fleet");
        let mut fleet: BTreeMap<&str, BTreeMap<String, Map>> = BTreeMap::new();
        for ty in types.iter().filter(|ty| file_documents.iter().any(|document| document.ty.kind == ty.kind)) {
            let documents = session.client.list(ty, &[])?.into_iter();
            fleet.insert(&ty.kind, documents.map(|document| (documents::id(&document).to_owned(), document)).collect());
        }
        let clusters = session.cluster_type()?;
        let decommissioned = if fleet.contains_key(clusters.kind.as_str()) {
            session.client.list(clusters, &[("decommissioned".to_owned(), "true".to_owned())])?
        } else {
            Vec::new()
        };
        let was_decommissioned = |document: &FileDocument<'_>| {
            document.ty.is_cluster() && decommissioned.iter().any(|cluster| documents::id(cluster) == document.id)
        };
        let pruned = self.find_pruned(session, file_documents)?;
        let mut comparison = Comparison { differences: Vec::new(), same: 0 };
        for document in file_documents {
            match fleet.get_mut(document.ty.kind.as_str()).and_then(|current| current.remove(&document.id)) {
                None if was_decommissioned(document) => {
                    comparison.differences.push(DocumentDifference::Restored(document));
                }
                None => comparison.differences.push(DocumentDifference::Created(document)),
                Some(current) if without_server_owned(document, &current) == document.body => comparison.same += 1,
                Some(current) => comparison.differences.push(DocumentDifference::Changed(document, current)),
            }
        }
        comparison.differences.extend(referrers_first(pruned));
        Ok(comparison)
    }

    fn find_pruned<'a>(
        &self,
        session: &'a Session,
        file_documents: &[FileDocument<'_>],
    ) -> Result<Vec<DocumentDifference<'a>>> {
        let Some(selector) = &self.selector else { return Ok(Vec::new()) };
        let named: BTreeSet<_> = file_documents.iter().map(FileDocument::name).collect();
        let mut pruned = Vec::new();
        for ty in session.types()?.iter().filter(|ty| file_documents.iter().any(|document| document.ty.kind == ty.kind))
        {
            let documents = session.client.list(ty, &selector.query(ty))?.into_iter();
            let unnamed = documents.filter(|document| !named.contains(&documents::name(ty, document)));
            pruned.extend(unnamed.map(|document| DocumentDifference::Pruned(ty, document)));
        }
        Ok(pruned)
    }

    fn file_names(&self) -> String {
        self.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// A document of the fleet without the read-only fields that the file does not contain.
fn without_server_owned(file: &FileDocument<'_>, current: &Map) -> Map {
    let is_server_owned = |name: &str| file.ty.field(name).is_some_and(|field| field["readOnly"] == true);
    let kept = |(name, _): &(&String, &Value)| file.body.contains_key(*name) || !is_server_owned(name);
    current.iter().filter(kept).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl ApplyArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let file_documents = self.desired.read(session)?;
        let mut differences = Vec::new();
        let change = self.consent.confirm_and_retry(session, || {
            // The plan must be for the compared revision: the server refuses it if the fleet was changed in between.
            let ready = session.client.ready()?;
            let comparison = self.desired.compare(session, &file_documents)?;
            self.report_comparison(session, &comparison);
            differences = comparison.differences;
            let writes: Vec<_> = differences.iter().map(DocumentDifference::write).collect();
            let restores = differences.iter().any(|difference| matches!(difference, DocumentDifference::Restored(_)));
            let confirm = if self.desired.prune || restores { Confirm::OnChange } else { Confirm::OnLoss };
            Ok((Edit::batch(writes).on(ready.revision.0, ready.epoch), confirm))
        });
        let Some(change) = change.map_err(|error| with_positions(error, &differences))? else {
            return Ok(ExitCode::SUCCESS);
        };
        let names: Vec<_> = differences.iter().map(DocumentDifference::name).collect();
        let sentence = match differences.len() {
            0 => format!("nothing to change (revision {})", change.revision),
            count => format!("{} applied as revision {}", counted(count, "document"), change.revision),
        };
        if session.out.is_for_people() {
            output::print(&differences.iter().map(line).collect::<String>())?;
        }
        session.out.report_done(&sentence, &names, &change.body)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Reports how many documents will be written and pruned.
    fn report_comparison(&self, session: &Session, Comparison { differences, same }: &Comparison<'_>) {
        let pruned =
            differences.iter().filter(|difference| matches!(difference, DocumentDifference::Pruned(..))).count();
        let differ = differences.len() - pruned;
        let (all, named) = (counted(differ + same, "document"), self.desired.file_names());
        session.message(&format!("{all} in {named}: {differ} to write, {same} unchanged, {pruned} to prune"));
        let restored = differences.iter().filter(|difference| matches!(difference, DocumentDifference::Restored(_)));
        let restored: Vec<_> = restored.map(DocumentDifference::name).collect();
        if !restored.is_empty() {
            output::print_message(&format!("warning: decommissioned, would be restored: {}", restored.join(", ")));
        }
    }
}

/// The documents in an order in which they can be deleted: clusters before their definitions, and components before
/// their dependencies.
fn referrers_first(pruned: Vec<DocumentDifference<'_>>) -> Vec<DocumentDifference<'_>> {
    let dependencies = |difference: &DocumentDifference<'_>| match difference {
        DocumentDifference::Pruned(_, document) => document.get("depends_on").and_then(Value::as_array).cloned(),
        _ => None,
    };
    let name_of = |difference: &DocumentDifference<'_>| match difference {
        DocumentDifference::Pruned(_, document) => documents::id(document).to_owned(),
        other => other.name(),
    };
    let is_needed =
        |id: &str, by: &[DocumentDifference<'_>]| by.iter().filter_map(dependencies).flatten().any(|on| on == id);
    let needed: BTreeSet<_> = pruned.iter().filter_map(dependencies).flatten().map(|on| on.to_string()).collect();
    // Only documents that others depend on need an order.
    let (mut remaining, mut ordered): (Vec<_>, Vec<_>) =
        pruned.into_iter().partition(|difference| needed.contains(&Value::from(name_of(difference)).to_string()));
    while !remaining.is_empty() {
        // In a cycle any order fails: the server refuses the change.
        let free = remaining.iter().position(|difference| !is_needed(&name_of(difference), &remaining));
        ordered.push(remaining.remove(free.unwrap_or(0)));
    }
    ordered
}

fn line(difference: &DocumentDifference<'_>) -> String {
    let (style, verb) = match difference {
        DocumentDifference::Created(_) => (GOOD, "created"),
        DocumentDifference::Restored(_) => (CHANGED, "restored"),
        DocumentDifference::Changed(..) => (CHANGED, "changed"),
        DocumentDifference::Pruned(ty, _) if ty.is_cluster() => (BAD, "decommissioned"),
        DocumentDifference::Pruned(..) => (BAD, "deleted"),
    };
    format!("{} {style}{verb}{style:#}\n", difference.name())
}

/// Adds file and line to every broken rule of an error.
fn with_positions(error: CliError, differences: &[DocumentDifference<'_>]) -> CliError {
    let position = |difference: &DocumentDifference<'_>, pointer: &str| match difference {
        DocumentDifference::Created(file)
        | DocumentDifference::Restored(file)
        | DocumentDifference::Changed(file, _) => Some(file.origin.position(pointer)),
        DocumentDifference::Pruned(..) => None,
    };
    let describe = |error: &FieldError| {
        let mut error = error.clone();
        let by_index = error.pointer.strip_prefix("/writes/").and_then(|rest| {
            let (at, pointer) =
                rest.split_once('/').map_or((rest, String::new()), |(at, rest)| (at, format!("/{rest}")));
            Some((differences.get(at.parse::<usize>().ok()?)?, pointer))
        });
        let by_name = || {
            let name = error.document.as_ref()?;
            Some((differences.iter().find(|difference| difference.name() == *name)?, error.pointer.clone()))
        };
        let Some((difference, pointer)) = by_index.or_else(by_name) else { return broken_rule(&error) };
        let position = position(difference, &pointer);
        let name = difference.name();
        // If a definition cannot be deleted, the error names the document that refers to it.
        let named = error.document.filter(|document| *document != name);
        error.document = Some(named.map_or_else(|| name.clone(), |other| format!("{name}: {other}")));
        error.pointer = pointer;
        position.map_or_else(|| broken_rule(&error), |position| format!("{position}: {}", broken_rule(&error)))
    };
    let details: Vec<_> = error.errors.iter().map(describe).collect();
    match details.as_slice() {
        // A single broken rule becomes the message; a reference that prevents a delete stays a detail.
        [only] if error.is(CliErrorKind::Failed) => error.with_message(only.clone()),
        _ => error.details(details),
    }
}
