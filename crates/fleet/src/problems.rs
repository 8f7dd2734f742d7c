//! What is wrong with data that is already there.
//!
//! The API refuses such data, but a seed or an older version may have left it. It is shown, never hidden: a gap in an
//! answer is a thing that a cluster does not run.

use std::fmt;

use model::{Document, Id, Kind, ResourceType, Value, yaml};
use serde::Serialize;

use crate::{
    Cluster, Definition, Snapshot,
    cluster::{Patches, no_variables},
    order::{Delivery, reaches},
};

/// A rule that stored data can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A cluster refers to a definition that is not there; its input is passed over.
    MissingDefinition,
    /// A definition depends on one that is not there.
    MissingDependency,
    /// A definition depends, over others, on itself; Flux would wait for ever, so the circle is not served.
    DependencyCycle,
    /// A cluster has a component enabled and not what it depends on; the dependency is not served.
    DependencyNotAssigned,
    /// A patch of a Kustomization is not a variable's name; that Kustomization would fail.
    InvalidVariable,
    /// A live cluster has the DNS name of a decommissioned one, which would answer in its place if it gave the name up.
    TombstoneDns,
    /// A cluster patches what is not defined; the patches do nothing.
    PatchWithoutDefinition,
    /// A cluster has a list of references that no type reads; its empty answers are refused.
    UnreadList,
    /// A cluster refers to one definition twice; its answers are refused.
    DuplicateReference,
    /// Two live clusters claim one DNS name; the answers of both are refused.
    DuplicateDns,
    /// A patch has no meaning; the cluster's answers are refused.
    InvalidPatch,
    /// A document is of a kind that no resource type declares; it is kept and not served.
    UnknownKind,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 12] = [
        Self::MissingDefinition,
        Self::MissingDependency,
        Self::DependencyCycle,
        Self::DependencyNotAssigned,
        Self::InvalidVariable,
        Self::TombstoneDns,
        Self::PatchWithoutDefinition,
        Self::UnreadList,
        Self::DuplicateReference,
        Self::DuplicateDns,
        Self::InvalidPatch,
        Self::UnknownKind,
    ];

    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingDefinition => "missing-definition",
            Self::MissingDependency => "missing-dependency",
            Self::DependencyCycle => "dependency-cycle",
            Self::DependencyNotAssigned => "dependency-not-assigned",
            Self::InvalidVariable => "invalid-variable",
            Self::TombstoneDns => "tombstone-dns",
            Self::PatchWithoutDefinition => "patch-without-definition",
            Self::UnreadList => "unread-list",
            Self::DuplicateReference => "duplicate-reference",
            Self::DuplicateDns => "duplicate-dns",
            Self::InvalidPatch => "invalid-patch",
            Self::UnknownKind => "unknown-kind",
        }
    }

    /// Whether a seed may break it: answers are still given, and the problem is shown.
    #[must_use]
    pub fn is_tolerated(self) -> bool {
        !matches!(self, Self::DuplicateReference | Self::DuplicateDns | Self::InvalidPatch)
    }
}

/// One broken rule in one document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The document's kind.
    pub kind: Kind,
    /// The document's id.
    pub id: Id,
    /// A JSON pointer to the place in the document.
    pub pointer: String,
    /// The rule.
    pub rule: Rule,
    /// A sentence.
    pub message: String,
}

impl Problem {
    /// What it is about, wherever in its document it stands: an item of a list moves when others come and go.
    pub(crate) fn substance(&self) -> (&Kind, &Id, Rule, &str) {
        (&self.kind, &self.id, self.rule, &self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\" {}: {} ({})", self.kind, self.id, self.pointer, self.message, self.rule.name())
    }
}

/// Collects the problems of one document.
struct Findings<'a> {
    document: &'a Document,
    problems: Vec<Problem>,
}

impl<'a> Findings<'a> {
    fn of(document: &'a Document) -> Self {
        Self { document, problems: Vec::new() }
    }

    fn tell(&mut self, pointer: impl Into<String>, rule: Rule, message: String) {
        let (kind, id) = (self.document.kind.clone(), self.document.id.clone());
        self.problems.push(Problem { kind, id, pointer: pointer.into(), rule, message });
    }
}

pub(crate) fn of_cluster(fleet: &Snapshot, cluster: &Cluster) -> Vec<Problem> {
    let mut findings = Findings::of(&cluster.document);
    if !cluster.is_live() {
        return findings.problems;
    }
    for ty in fleet.registry().definitions() {
        check_references(fleet, cluster, ty, &mut findings);
    }
    for list in cluster.unread_lists() {
        findings.tell(yaml::child("", list), Rule::UnreadList, format!("no resource type reads the list \"{list}\""));
    }
    for Patches { name: id, refused, .. } in cluster.patches() {
        let patchable = fleet.registry().definitions().filter(|ty| ty.patchable);
        if !patchable.into_iter().any(|ty| fleet.definition_by_name(ty, id).is_some()) {
            let message = format!("nothing that can be patched is called \"{id}\"");
            findings.tell(yaml::child("/patches", id), Rule::PatchWithoutDefinition, message);
        }
        if let Some(error) = refused {
            let pointer = yaml::child(&yaml::child("/patches", id), &error.key);
            findings.tell(pointer, Rule::InvalidPatch, error.to_string());
        }
    }
    for other in fleet.claims(cluster.dns()).filter(|other| other.id() != cluster.id()) {
        let (rule, message) = if other.is_live() {
            (Rule::DuplicateDns, format!("cluster \"{}\" has the same DNS name", other.id()))
        } else {
            let message = format!("the decommissioned cluster \"{}\" has this DNS name: purge it first", other.id());
            (Rule::TombstoneDns, message)
        };
        findings.tell("/cluster_dns", rule, message);
    }
    findings.problems
}

/// The list of one type: what it names is there, once, with what it depends on, and patched in a way that it takes.
fn check_references(fleet: &Snapshot, cluster: &Cluster, ty: &ResourceType, findings: &mut Findings<'_>) {
    let twice = cluster.twice(ty.position).is_some();
    let enabled = |on: &str| fleet.references(cluster, ty).any(|(id, it, _)| it.enabled && id.as_str() == on);
    for (at, (id, beside, definition)) in fleet.references(cluster, ty).enumerate() {
        let pointer = || format!("/{}/{at}", ty.list);
        if twice && fleet.references(cluster, ty).take(at).any(|(before, ..)| before == id) {
            findings.tell(pointer(), Rule::DuplicateReference, format!("\"{id}\" is in the list twice"));
        }
        let Some(definition) = definition else {
            findings.tell(pointer(), Rule::MissingDefinition, format!("{} \"{id}\" is not defined", ty.kind));
            continue;
        };
        if beside.enabled {
            for on in definition.depends_on.iter().filter(|on| !enabled(on)) {
                let message = format!("\"{id}\" depends on \"{on}\", which this cluster has not enabled");
                findings.tell(pointer(), Rule::DependencyNotAssigned, message);
            }
        }
        if definition.delivery == Delivery::Kustomization
            && let Some(patches) = beside.patches
            && cluster.patches_of(id.as_str()).is_some_and(|patches| !patches.are_variables)
        {
            let patched = yaml::child("/patches", id.as_str());
            let said = match serde_json::from_str::<Value>(&format!("{{{}}}", patches.trim_start_matches(','))) {
                Ok(said) => said,
                Err(error) => {
                    findings.tell(patched, Rule::InvalidVariable, format!("the patches cannot be read: {error}"));
                    continue;
                }
            };
            let keys: Vec<_> = said["patches"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            for key in no_variables(&keys) {
                let message =
                    format!("\"{key}\" is not a free name of a variable, which patches of an OCI artifact are");
                findings.tell(yaml::child(&patched, key), Rule::InvalidVariable, message);
            }
        }
    }
}

pub(crate) fn of_definition(fleet: &Snapshot, definition: &Definition) -> Vec<Problem> {
    let mut findings = Findings::of(&definition.document);
    let ty = fleet.registry().by_kind(definition.document.kind.as_str());
    if let Some((ty, field)) = ty.and_then(|ty| Some((ty, ty.ordered_by.as_ref()?))) {
        let id = definition.document.id.as_str();
        for (at, on) in definition.depends_on.iter().enumerate() {
            let pointer = format!("/{field}/{at}");
            if fleet.definition_by_name(ty, on).is_none() {
                findings.tell(pointer, Rule::MissingDependency, format!("{} \"{on}\" is not defined", ty.kind));
            } else if reaches(on, id, |at| dependencies(fleet, ty, at)) {
                findings.tell(pointer, Rule::DependencyCycle, format!("\"{on}\" depends on \"{id}\" in turn"));
            }
        }
    }
    findings.problems
}

fn dependencies<'a>(fleet: &'a Snapshot, ty: &ResourceType, id: &str) -> Vec<&'a str> {
    let definition = fleet.definition_by_name(ty, id).into_iter();
    definition.flat_map(|definition| definition.depends_on.iter().map(AsRef::as_ref)).collect()
}

pub(crate) fn of_stranger(document: &Document) -> Problem {
    Problem {
        kind: document.kind.clone(),
        id: document.id.clone(),
        pointer: String::new(),
        rule: Rule::UnknownKind,
        message: format!("no resource type declares the kind \"{}\"", document.kind),
    }
}
