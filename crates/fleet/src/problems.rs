//! What is wrong with data that is already there.
//!
//! The API refuses such data, but a seed or an older version may have left it. It is shown, never hidden: what is missing from
//! an answer does not run on the cluster.
//!
//! A fleet may have hundreds of thousands of problems, so a snapshot keeps only how many problems each document has by rule
//! (`index`). The texts are written when a client asks for them, by the same code that counts (`checks`).

mod checks;
mod index;
mod query;

use std::fmt;

use model::{Id, Kind, excerpt::printable};
use serde::Serialize;

#[cfg(test)]
pub(crate) use checks::CHECKED;
pub(crate) use checks::{Texts, check_cluster, check_document};
pub(crate) use index::{Counts, ProblemIndex};
pub use query::{ProblemFilter, ProblemPage, RisenProblems};

/// A rule that stored data can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A cluster refers to a definition that is not there; its input is left out.
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
    /// A cluster still polls under a DNS name that it had before; if that name is released, it gets no answer.
    FormerDnsPolled,
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
    /// The file of a type declares another kind, list, path, key, field, nest or default than the change log records; the type is
    /// not served.
    TypesChanged,
    /// A document is of a kind that no resource type declares; it is kept and not served.
    UnknownKind,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 14] = [
        Self::MissingDefinition,
        Self::MissingDependency,
        Self::DependencyCycle,
        Self::DependencyNotAssigned,
        Self::InvalidVariable,
        Self::TombstoneDns,
        Self::FormerDnsPolled,
        Self::PatchWithoutDefinition,
        Self::UnreadList,
        Self::DuplicateReference,
        Self::DuplicateDns,
        Self::InvalidPatch,
        Self::TypesChanged,
        Self::UnknownKind,
    ];

    /// The rule of a stable name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

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
            Self::FormerDnsPolled => "former-dns-polled",
            Self::PatchWithoutDefinition => "patch-without-definition",
            Self::UnreadList => "unread-list",
            Self::DuplicateReference => "duplicate-reference",
            Self::DuplicateDns => "duplicate-dns",
            Self::InvalidPatch => "invalid-patch",
            Self::TypesChanged => "types-changed",
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
        let Self { kind, id, pointer, message, rule } = self;
        // The pointer and the message hold text of the document.
        f.write_str(&printable(format!("{kind} \"{id}\" {pointer}: {message} ({})", rule.name())))
    }
}
