//! `status`, `problems` and `types`: the server itself.

use std::process::ExitCode;

use api::{ChangeLogStatus, DocumentProblem, ProblemCounts};
use clap::Args;
use serde_json::json;

use crate::{failure::Result, output::Shown, session::Session, table::Table};

#[derive(Args)]
pub(crate) struct Status {
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl Status {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        session.present(self.watch, || {
            let ready = session.client.ready()?;
            let age = format!("{:.1} s", ready.age_seconds);
            let store = match ready.store {
                ChangeLogStatus::Diverged => "diverged: flux-resourceset-cli store says more".to_owned(),
                status => status.to_string(),
            };
            let mut told = vec![
                ("server", session.client.url().to_owned()),
                ("chosen by", session.origin.clone()),
                ("version", ready.version.clone()),
                ("revision", ready.revision.to_string()),
                ("age of the picture", age),
                ("store", store),
            ];
            // Problems need a good token; without one, the rest is still worth telling.
            let problems = session.client.problem_counts();
            told.push(match &problems {
                Ok(counts) => ("problems", by_rule(counts)),
                Err(error) => ("problems", format!("unknown: {error}")),
            });
            let value = json!({
                "server": session.client.url(), "origin": session.origin, "version": ready.version,
                "revision": ready.revision, "age_seconds": ready.age_seconds, "store": ready.store,
                "problems": problems.as_ref().ok().map(|counts| counts.total),
                "problems_by_rule": problems.as_ref().ok().map(|counts| &counts.rules)
            });
            Ok(Shown { value, names: vec![session.client.url().to_owned()], table: Table::default().facts(&told) })
        })
    }
}

/// How many problems there are and, if there are any, of which rules.
fn by_rule(counts: &ProblemCounts) -> String {
    let rules = counts.rules.iter().filter(|(_, count)| **count > 0);
    let mut rules: Vec<_> = rules.map(|(rule, count)| format!("{rule} {count}")).collect();
    rules.sort();
    if rules.is_empty() { counts.total.to_string() } else { format!("{} ({})", counts.total, rules.join(", ")) }
}

#[derive(Args)]
pub(crate) struct Problems {
    /// Only problems of this rule, such as missing-definition
    #[arg(long)]
    rule: Option<String>,
    /// Only problems of documents of this type
    #[arg(long)]
    kind: Option<String>,
    /// Only problems of documents of this id
    #[arg(long)]
    id: Option<String>,
    /// The first so many; all of them, if it is not given
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Show them again whenever they change
    #[arg(short, long)]
    watch: bool,
}

impl Problems {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let filters = [("rule", &self.rule), ("kind", &self.kind), ("id", &self.id)];
        let filters = filters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let filters: Vec<_> = filters.collect();
        session.present(self.watch, || {
            let (problems, total) = session.client.problems(&filters, self.limit)?;
            let column = |of: fn(&DocumentProblem) -> String| problems.iter().map(of).collect::<Vec<_>>();
            let names = column(|problem| format!("{}/{}", problem.kind, problem.id));
            let table = if total == 0 {
                Table::default().note("There are no problems.")
            } else {
                let table = Table::default()
                    .key("DOCUMENT", names.clone())
                    .column("RULE", column(|problem| problem.rule.to_string()))
                    .column("PLACE", column(|problem| problem.pointer.clone()))
                    .column("PROBLEM", column(|problem| problem.message.clone()));
                if problems.len() < total { table.note(format!("{} of {total}", problems.len())) } else { table }
            };
            Ok(Shown { value: serde_json::to_value(&problems)?, names, table })
        })
    }
}
