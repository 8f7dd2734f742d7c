//! How many problems a snapshot has: by document and rule, and in all by rule.
//!
//! Both are brought up to date with every change, so that a request for the number of problems costs nothing.

use imbl::{OrdMap, ordmap::DiffItem};
use model::{Id, Kind};

use super::Rule;

const RULES: usize = Rule::ALL.len();

/// How often one document breaks each rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([u32; RULES]);

impl Counts {
    pub(crate) fn count(&self, rule: Rule) -> u32 {
        self.0[rule as usize]
    }

    pub(super) fn add_to(&mut self, rule: Rule, count: u32) {
        let known = &mut self.0[rule as usize];
        *known = known.saturating_add(count);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// How many problems these are, of one rule or of all.
    pub(super) fn sum(&self, rule: Option<Rule>) -> u64 {
        match rule {
            Some(rule) => self.count(rule).into(),
            None => self.0.iter().copied().map(u64::from).sum(),
        }
    }
}

/// The documents that have problems, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProblemIndex {
    by_document: OrdMap<(Kind, Id), Counts>,
    totals: [u64; RULES],
}

impl ProblemIndex {
    /// Notes what one document breaks, which may be nothing.
    pub(crate) fn set(&mut self, document: (Kind, Id), counts: Counts) {
        let before = if counts.is_empty() {
            self.by_document.remove(&document)
        } else {
            self.by_document.insert(document, counts)
        };
        let before = before.unwrap_or_default();
        for ((total, count), before) in self.totals.iter_mut().zip(counts.0).zip(before.0) {
            *total = *total + u64::from(count) - u64::from(before);
        }
    }

    pub(crate) fn of_document(&self, document: &(Kind, Id)) -> Counts {
        self.by_document.get(document).copied().unwrap_or_default()
    }

    /// How often a rule is broken in the whole fleet.
    pub(crate) fn total(&self, rule: Rule) -> u64 {
        self.totals[rule as usize]
    }

    pub(crate) fn documents(&self) -> impl Iterator<Item = (&(Kind, Id), Counts)> {
        self.by_document.iter().map(|(document, counts)| (document, *counts))
    }

    /// The documents that break something more often than in another index, or not there at all, with what they broke there.
    /// What the two have in common is passed over.
    pub(super) fn risen_since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (&'a (Kind, Id), Counts, Counts)> {
        before.by_document.diff(&self.by_document).filter_map(|item| match item {
            DiffItem::Add(document, counts) => Some((document, *counts, Counts::default())),
            DiffItem::Update { old: (_, old), new: (document, new) } => Some((document, *new, *old)),
            DiffItem::Remove(..) => None,
        })
    }
}
