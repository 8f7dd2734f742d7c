//! What is wrong with data that is already there.
//!
//! The API refuses such data, but a seed or an older version may have left it. It is shown, never hidden: a gap in an
//! answer is a thing that a cluster does not run.

use std::{collections::BTreeSet, fmt};

use model::{Document, Id, Kind, Value, helm, yaml};
use serde::Serialize;

use crate::{Cluster, Definition, Snapshot};

/// A rule that stored data can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A cluster refers to a definition that is not there; its input is passed over.
    MissingDefinition,
    /// A definition depends on one that is not there.
    MissingDependency,
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
    pub const ALL: [Self; 6] = [
        Self::MissingDefinition,
        Self::MissingDependency,
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
            Self::DuplicateReference => "duplicate-reference",
            Self::DuplicateDns => "duplicate-dns",
            Self::InvalidPatch => "invalid-patch",
            Self::UnknownKind => "unknown-kind",
        }
    }

    /// Whether a seed may break it: what the contract says is passed over, and no more.
    #[must_use]
    pub fn is_tolerated(self) -> bool {
        matches!(self, Self::MissingDefinition | Self::MissingDependency)
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\" {}: {} ({})", self.kind, self.id, self.pointer, self.message, self.rule.name())
    }
}

pub(crate) fn of_cluster(fleet: &Snapshot, cluster: &Cluster) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !cluster.is_live() {
        return problems;
    }
    let mut tell = |pointer: String, rule, message: String| {
        let (kind, id) = (cluster.document.kind.clone(), cluster.id().clone());
        problems.push(Problem { kind, id, pointer, rule, message });
    };
    for ty in fleet.registry().definitions() {
        let mut seen = BTreeSet::new();
        for (at, reference) in cluster.references(ty.position).iter().enumerate() {
            let pointer = format!("/{}/{at}", ty.list);
            if fleet.definition(ty, &reference.id).is_none() {
                let message = format!("{} \"{}\" is not defined", ty.kind, reference.id);
                tell(pointer.clone(), Rule::MissingDefinition, message);
            }
            if !seen.insert(&reference.id) {
                tell(pointer, Rule::DuplicateReference, format!("\"{}\" is in the list twice", reference.id));
            }
        }
    }
    for (id, patches) in &cluster.patches {
        let pointer = yaml::child("/patches", id);
        if let Some(Err(error)) = patches.as_object().map(helm::expand) {
            tell(yaml::child(&pointer, &error.key), Rule::InvalidPatch, error.to_string());
        }
    }
    let others = fleet.live_claims(&cluster.dns).filter(|other| other.id() != cluster.id());
    for other in others {
        let message = format!("cluster \"{}\" has the same DNS name", other.id());
        tell("/cluster_dns".to_owned(), Rule::DuplicateDns, message);
    }
    problems
}

pub(crate) fn of_definition(fleet: &Snapshot, definition: &Definition) -> Vec<Problem> {
    let document = &definition.document;
    let Some(ty) = fleet.registry().by_kind(document.kind.as_str()) else { return Vec::new() };
    let Some(field) = &ty.ordered_by else { return Vec::new() };
    let list = definition.fields.get(field).and_then(Value::as_array);
    let missing = |(at, on): (usize, &Value)| {
        let on = on.as_str()?;
        fleet.definition_by_name(ty, on).is_none().then(|| Problem {
            kind: document.kind.clone(),
            id: document.id.clone(),
            pointer: format!("/{field}/{at}"),
            rule: Rule::MissingDependency,
            message: format!("{} \"{on}\" is not defined", ty.kind),
        })
    };
    list.into_iter().flatten().enumerate().filter_map(missing).collect()
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
