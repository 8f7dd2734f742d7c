//! Queries about the problems of a snapshot: all of them, a page of some, those of one document, and what has become more
//! since another snapshot.
//!
//! Texts are written only for what is answered.

use std::fmt;

use model::{Id, Kind, excerpt::sentence};

use super::{Counts, Problem, ProblemIndex, Rule, Texts, check_document};
use crate::Snapshot;

/// Which problems are wanted. A field that is not set does not restrict them.
#[derive(Clone, Debug, Default)]
pub struct ProblemFilter {
    /// Those of a rule.
    pub rule: Option<Rule>,
    /// Those of documents of a kind.
    pub kind: Option<Kind>,
    /// Those of documents of an id.
    pub id: Option<Id>,
}

impl ProblemFilter {
    /// Whether a problem is wanted.
    #[must_use]
    pub fn accepts(&self, problem: &Problem) -> bool {
        self.accepts_rule(problem.rule) && self.accepts_document(&problem.kind, &problem.id)
    }

    fn accepts_rule(&self, rule: Rule) -> bool {
        self.rule.is_none_or(|wanted| wanted == rule)
    }

    fn accepts_document(&self, kind: &Kind, id: &Id) -> bool {
        self.kind.as_ref().is_none_or(|wanted| wanted == kind) && self.id.as_ref().is_none_or(|wanted| wanted == id)
    }
}

/// A page of the problems that were asked for, and how many there are on all pages.
#[derive(Clone, Debug)]
pub struct ProblemPage {
    /// On all pages.
    pub total: u64,
    /// On this one.
    pub problems: Vec<Problem>,
}

impl Snapshot {
    /// Everything that is wrong with its documents, in their order. Texts are made one document after the other.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        self.problem_index().documents().flat_map(|(document, _)| self.problems_of(document))
    }

    /// How often a rule is broken in its documents. Costs nothing.
    #[must_use]
    pub fn problem_count(&self, rule: Rule) -> u64 {
        self.problem_index().total(rule)
    }

    /// The problems that a filter takes, in the order of their documents: so many, behind so many others.
    #[must_use]
    pub fn problem_page(&self, filter: &ProblemFilter, offset: u64, limit: u64) -> ProblemPage {
        let mut page = ProblemPage { total: 0, problems: Vec::new() };
        let end = offset.saturating_add(limit);
        for (document, counts) in self.problem_index().documents() {
            let count = counts.sum(filter.rule);
            if count == 0 || !filter.accepts_document(&document.0, &document.1) {
                continue;
            }
            let positions = page.total..page.total + count;
            page.total = positions.end;
            if positions.start < end && positions.end > offset {
                let problems = self.problems_of(document).into_iter().filter(|it| filter.accepts_rule(it.rule));
                let numbered = positions.zip(problems).filter(|(position, _)| (offset..end).contains(position));
                page.problems.extend(numbered.map(|(_, problem)| problem));
            }
        }
        page
    }

    /// What is wrong with one document.
    pub(crate) fn problems_of(&self, (kind, id): &(Kind, Id)) -> Vec<Problem> {
        let Some(document) = self.document_of_kind(kind, id) else { return Vec::new() };
        let mut texts = Texts::for_document(document);
        check_document(self, document, &mut texts);
        texts.problems
    }

    /// The rules that are broken more often than in another snapshot, with an example of a few of them; none, if there are
    /// none.
    #[must_use]
    pub fn risen_problems(&self, before: Option<&Self>) -> Option<RisenProblems> {
        let known = |rule| before.map_or(0, |before| before.problem_count(rule));
        let risen = Rule::ALL.into_iter().filter(|rule| self.problem_count(*rule) > known(*rule));
        let rules: Vec<_> = risen.map(|rule| (rule, known(rule), self.problem_count(rule))).collect();
        if rules.is_empty() {
            return None;
        }
        let mut wanted: Vec<_> = rules.iter().map(|(rule, ..)| *rule).take(EXAMPLES).collect();
        let mut examples = Vec::new();
        let none = ProblemIndex::default();
        let index = before.map_or(&none, Self::problem_index);
        for (document, counts, was) in self.problem_index().risen_since(index) {
            let new = |rule: &Rule| counts.count(*rule) > was.count(*rule);
            if wanted.is_empty() {
                break;
            }
            if !wanted.iter().any(new) {
                continue;
            }
            let known = if was == Counts::default() { None } else { before.map(|it| it.problems_of(document)) };
            let known = known.unwrap_or_default();
            for problem in self.problems_of(document) {
                let is_new = !known.iter().any(|it| it.substance() == problem.substance());
                if is_new && let Some(at) = wanted.iter().position(|rule| *rule == problem.rule) {
                    wanted.swap_remove(at);
                    examples.push(problem);
                }
            }
        }
        Some(RisenProblems { rules, examples })
    }
}

/// The most examples of what has become more.
const EXAMPLES: usize = 3;

/// No example is longer than this, in characters: the content of a document may be long.
const LONGEST: usize = 300;

/// What is broken more often than before, for a log line: as long for a large fleet as for a small one.
#[derive(Clone, Debug)]
pub struct RisenProblems {
    /// The rules, how often each was broken before, and how often now.
    pub rules: Vec<(Rule, u64, u64)>,
    /// One problem of some of them.
    pub examples: Vec<Problem>,
}

impl fmt::Display for RisenProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (rule, before, now)) in self.rules.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} {now}", rule.name())?;
            if *before > 0 {
                write!(f, " (before: {before})")?;
            }
        }
        for (at, example) in self.examples.iter().enumerate() {
            let text = sentence(example.to_string(), LONGEST);
            write!(f, "{}{text}", if at == 0 { "; for example: " } else { "; " })?;
        }
        Ok(())
    }
}
