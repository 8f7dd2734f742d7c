//! The rules, checked on one document of a snapshot.
//!
//! Each check either counts or writes texts, depending on where its findings go. Counting makes no text: a start counts the
//! problems of every document, and a change those of the documents that it touches.

use std::collections::BTreeSet;

use model::{Document, ResourceType, TypeRecord, Value, yaml};

use super::{Counts, Problem, Rule};
use crate::{
    Cluster, Definition, Snapshot,
    cluster::{Patches, no_variables},
    order::Delivery,
};

/// Where in a document a problem is, as a JSON pointer, and a sentence.
type Text = (String, String);

/// Collects the problems of one document.
pub(crate) trait Findings {
    /// Takes problems of one rule: so many as there are texts.
    fn add_all(&mut self, rule: Rule, count: u32, texts: impl FnOnce() -> Vec<Text>);

    /// Takes one problem.
    fn add(&mut self, rule: Rule, text: impl FnOnce() -> Text) {
        self.add_all(rule, 1, || vec![text()]);
    }
}

impl Findings for Counts {
    fn add_all(&mut self, rule: Rule, count: u32, _: impl FnOnce() -> Vec<Text>) {
        self.add_to(rule, count);
    }
}

/// The problems of one document, with their texts.
pub(crate) struct Texts<'a> {
    document: &'a Document,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Texts<'a> {
    pub(crate) fn for_document(document: &'a Document) -> Self {
        Self { document, problems: Vec::new() }
    }
}

impl Findings for Texts<'_> {
    fn add_all(&mut self, rule: Rule, _: u32, texts: impl FnOnce() -> Vec<Text>) {
        let (kind, id) = (&self.document.kind, &self.document.id);
        let problem = |(pointer, message)| Problem { kind: kind.clone(), id: id.clone(), pointer, rule, message };
        self.problems.extend(texts().into_iter().map(problem));
    }
}

#[cfg(test)]
thread_local! {
    /// How many documents this thread has checked: tests show by it that a change checks no others than it touches.
    pub(crate) static CHECKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn note_check() {
    #[cfg(test)]
    CHECKED.set(CHECKED.get() + 1);
}

/// Checks a document of any kind.
pub(crate) fn check_document(fleet: &Snapshot, document: &Document, findings: &mut impl Findings) {
    let id = &document.id;
    match fleet.registry().by_kind(document.kind.as_str()) {
        Some(ty) if ty.is_cluster() => {
            if let Some(cluster) = fleet.cluster(id) {
                check_cluster(fleet, cluster, findings);
            }
        }
        Some(ty) => {
            note_check();
            if let Some(definition) = fleet.definition(ty, id) {
                check_definition(fleet, ty, definition, findings);
            }
        }
        // The records of types are checked with the types themselves.
        None if document.kind.as_str() == TypeRecord::KIND => {}
        None => findings.add(Rule::UnknownKind, || {
            (String::new(), format!("no resource type declares the kind \"{}\"", document.kind))
        }),
    }
}

/// Checks a cluster. Only a live one can have problems.
pub(crate) fn check_cluster(fleet: &Snapshot, cluster: &Cluster, findings: &mut impl Findings) {
    note_check();
    if !cluster.is_live() {
        return;
    }
    for ty in fleet.registry().definitions() {
        check_references(fleet, cluster, ty, findings);
    }
    for list in cluster.unread_lists() {
        findings
            .add(Rule::UnreadList, || (yaml::child("", list), format!("no resource type reads the list \"{list}\"")));
    }
    for patches @ Patches { name: id, .. } in cluster.patches() {
        let mut patchable = fleet.registry().definitions().filter(|ty| ty.patchable);
        if !patchable.any(|ty| fleet.definition_by_name(ty, id).is_some()) {
            findings.add(Rule::PatchWithoutDefinition, || {
                (yaml::child("/patches", id), format!("nothing that can be patched is called \"{id}\""))
            });
        }
        if let Err(error) = cluster.members(patches) {
            findings
                .add(Rule::InvalidPatch, || (yaml::child(&yaml::child("/patches", id), &error.key), error.to_string()));
        }
    }
    for dns in cluster.dns_names() {
        for other in fleet.claims(dns).filter(|other| other.id() != cluster.id()) {
            let rule = if other.is_live() { Rule::DuplicateDns } else { Rule::TombstoneDns };
            findings.add(rule, || {
                let field = if **dns == *cluster.dns() { "/cluster_dns" } else { "/former_dns" };
                (field.to_owned(), claim(other, dns))
            });
        }
    }
}

/// The text about another cluster that claims a DNS name.
fn claim(other: &Cluster, dns: &str) -> String {
    let holder = other.id();
    match (other.is_live(), other.dns() == dns) {
        (true, true) => format!("cluster \"{holder}\" has the DNS name \"{dns}\""),
        (true, false) => {
            let next = format!("DELETE /clusters/{holder}/former_dns/{dns} releases it");
            format!("\"{dns}\" is a former DNS name of cluster \"{holder}\", which answers to it; {next}")
        }
        (false, _) => format!("the decommissioned cluster \"{holder}\" has the DNS name \"{dns}\": purge it first"),
    }
}

/// The list of one type: what it names is there, once, with what it depends on, and patched in a way that it takes.
fn check_references(fleet: &Snapshot, cluster: &Cluster, ty: &ResourceType, findings: &mut impl Findings) {
    let mut seen = cluster.duplicate(ty.position).map(|_| BTreeSet::new());
    let mut enabled = None;
    for (at, (id, reference, definition)) in fleet.references(cluster, ty).enumerate() {
        let pointer = || format!("/{}/{at}", ty.list);
        if seen.as_mut().is_some_and(|seen| !seen.insert(id)) {
            findings.add(Rule::DuplicateReference, || (pointer(), format!("\"{id}\" is in the list twice")));
        }
        let Some(definition) = definition else {
            findings.add(Rule::MissingDefinition, || (pointer(), format!("{} \"{id}\" is not defined", ty.kind)));
            continue;
        };
        if reference.enabled && !definition.depends_on.is_empty() {
            let enabled = enabled.get_or_insert_with(|| cluster.enabled_slots(ty.position));
            let find = |on: &str| fleet.catalogue(ty).and_then(|catalogue| catalogue.find_slot(on));
            let is_enabled = |on: &str| find(on).is_some_and(|slot| enabled.binary_search(&slot).is_ok());
            for on in definition.depends_on.iter().map(|on| &*on.id).filter(|on| !is_enabled(on)) {
                findings.add(Rule::DependencyNotAssigned, || {
                    (pointer(), format!("\"{id}\" depends on \"{on}\", which this cluster has not enabled"))
                });
            }
        }
        if definition.delivery == Delivery::Kustomization
            && let Some(patches) = cluster.patches_for(reference).filter(|patches| patches.not_variables > 0)
        {
            findings.add_all(Rule::InvalidVariable, patches.not_variables, || no_variable_texts(cluster, patches));
        }
    }
}

/// The keys of a component's patches that are no variables, each with a sentence.
fn no_variable_texts(cluster: &Cluster, patches: &Patches) -> Vec<Text> {
    let patched = yaml::child("/patches", &patches.name);
    let members = cluster.members(patches).unwrap_or_default().trim_start_matches(',');
    let read: Value = match serde_json::from_str(&format!("{{{members}}}")) {
        Ok(read) => read,
        Err(error) => return vec![(patched, format!("the patches cannot be read: {error}"))],
    };
    let keys: Vec<_> = read["patches"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let text = |key: &str| {
        let message = format!("\"{key}\" is not a free name of a variable, which patches of an OCI artifact are");
        (yaml::child(&patched, key), message)
    };
    no_variables(&keys).map(text).collect()
}

fn check_definition(fleet: &Snapshot, ty: &ResourceType, definition: &Definition, findings: &mut impl Findings) {
    let (Some(field), Some(catalogue)) = (&ty.ordered_by, fleet.catalogue(ty)) else { return };
    let id = definition.document.id.as_str();
    for (at, on) in definition.depends_on.iter().map(|on| &*on.id).enumerate() {
        let pointer = || format!("/{field}/{at}");
        if fleet.definition_by_name(ty, on).is_none() {
            findings.add(Rule::MissingDependency, || (pointer(), format!("{} \"{on}\" is not defined", ty.kind)));
        } else if catalogue.is_in_cycle(id, on) {
            findings.add(Rule::DependencyCycle, || (pointer(), format!("\"{on}\" depends on \"{id}\" in turn")));
        }
    }
}
