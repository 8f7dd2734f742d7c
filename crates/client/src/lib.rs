//! A typed, blocking client of the operator's API.
//!
//! It sends requests and reads answers, and decides nothing: what a command means is up to its caller. It does two things that every
//! caller would have to do: it chooses the token that a request needs, and it retries where that is safe.

mod answer;
mod edit;
mod failure;
mod http;
mod resource_type;
mod stream;

pub use answer::{Fetched, Made};
pub use edit::{Edit, PatchKind};
pub use failure::ClientError;
pub use http::{Client, Settings, Token};
pub use resource_type::Types;
pub use stream::Changes;

use api::{
    ChangeDetails, ChangeSummary, DocumentProblem, Explanation, HistoryEntry, ProblemCounts, Readiness, StoreState,
    TypeChanges, TypeDescription,
};
use model::{Map, Value};
use serde::de::DeserializeOwned;

/// Pairs of a query: filters and pages.
pub type Query<'a> = &'a [(String, String)];

impl Client {
    /// The resource types that the server knows.
    pub fn types(&self) -> Result<Types, ClientError> {
        self.read::<Vec<TypeDescription>>(&["types"], &[]).map(Types::new)
    }

    /// The documents of a type that match the filters.
    pub fn list(&self, ty: &TypeDescription, query: Query<'_>) -> Result<Vec<Map>, ClientError> {
        self.read(&[&ty.plural], query)
    }

    /// One document, now or as it was at a revision.
    pub fn get(&self, ty: &TypeDescription, id: &str, revision: Option<u64>) -> Result<Fetched, ClientError> {
        self.fetch(&[&ty.plural, id], &at(revision))
    }

    /// The changes of a document, newest first: all that the server keeps.
    pub fn history(&self, ty: &TypeDescription, id: &str) -> Result<Vec<HistoryEntry>, ClientError> {
        let mut all: Vec<HistoryEntry> = Vec::new();
        loop {
            let mut query = vec![("limit".to_owned(), "100".to_owned())];
            query.extend(all.last().map(|last| ("before".to_owned(), last.heading.revision.to_string())));
            let page: Vec<HistoryEntry> = self.read(&[&ty.plural, id, "history"], &query)?;
            let more = page.len() == 100;
            all.extend(page);
            if !more {
                return Ok(all);
            }
        }
    }

    /// The inputs of a type that a cluster gets, now or as they were at a revision.
    pub fn inputs(&self, cluster: &str, ty: &TypeDescription, revision: Option<u64>) -> Result<Value, ClientError> {
        self.read(&["clusters", cluster, "inputs", &ty.path], &at(revision))
    }

    /// Where each value comes from that a cluster is served of a definition.
    pub fn explain(&self, cluster: &str, ty: &TypeDescription, id: &str) -> Result<Explanation, ClientError> {
        self.read(&["clusters", cluster, "explain", &ty.path, id], &[])
    }

    /// The answer to a poll of Flux Operator under a DNS name.
    pub fn poll(&self, dns: &str, path: &str) -> Result<Value, ClientError> {
        self.read(&["api", "v2", "flux", "clusters", dns, path], &[])
    }

    /// Everything that a cluster needs to poll except the token, as manifests.
    pub fn bootstrap(&self, dns: &str, query: Query<'_>) -> Result<String, ClientError> {
        self.get_from(&["api", "v2", "flux", "clusters", dns, "bootstrap"], query)?.text()
    }

    /// Changes, newest first.
    pub fn changes(&self, query: Query<'_>) -> Result<Vec<ChangeSummary>, ClientError> {
        self.read(&["changes"], query)
    }

    /// One change, with every document before and after it.
    pub fn change(&self, revision: u64) -> Result<ChangeDetails, ClientError> {
        self.read(&["changes", &revision.to_string()], &[])
    }

    /// Problems of stored documents: all that match the filters, or so many of them; and how many there are.
    pub fn problems(
        &self,
        filters: Query<'_>,
        most: Option<usize>,
    ) -> Result<(Vec<DocumentProblem>, usize), ClientError> {
        const PAGE: usize = 10_000;
        let mut all: Vec<DocumentProblem> = Vec::new();
        loop {
            let limit = most.map_or(PAGE, |most| most.saturating_sub(all.len()).min(PAGE));
            let mut query = filters.to_vec();
            query.extend([("limit", limit), ("offset", all.len())].map(|(name, at)| (name.to_owned(), at.to_string())));
            let answer = self.get_from(&["problems"], &query)?;
            let total = answer.header("x-total-count").and_then(|count| count.parse().ok());
            let page: Vec<DocumentProblem> = answer.json()?;
            let is_last = page.is_empty();
            all.extend(page);
            let total = total.unwrap_or(all.len());
            if is_last || all.len() >= most.unwrap_or(total).min(total) {
                return Ok((all, total));
            }
        }
    }

    /// How many problems there are, in all and by rule.
    pub fn problem_counts(&self) -> Result<ProblemCounts, ClientError> {
        self.read(&["problems", "counts"], &[])
    }

    /// Where the server's files and the change log differ on how resource types are served.
    pub fn type_changes(&self) -> Result<TypeChanges, ClientError> {
        self.read(&["types", "changes"], &[])
    }

    /// Whether polls can be answered, and from a snapshot of what age.
    pub fn ready(&self) -> Result<Readiness, ClientError> {
        self.read(&["ready"], &[])
    }

    /// What is served, and where the change log ends.
    pub fn store(&self) -> Result<StoreState, ClientError> {
        self.read(&["store"], &[])
    }

    fn read<T: DeserializeOwned>(&self, path: &[&str], query: Query<'_>) -> Result<T, ClientError> {
        self.get_from(path, query)?.json()
    }
}

fn at(revision: Option<u64>) -> Vec<(String, String)> {
    revision.map(|revision| ("revision".to_owned(), revision.to_string())).into_iter().collect()
}
