//! `status` and `problems`: the state of the server.

use std::process::ExitCode;

use api::{ChangeLogStatus, DocumentProblem, ProblemCounts};
use clap::Args;
use serde_json::json;

use crate::{failure::Result, output::CommandOutput, session::Session, table::TextTable};

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// Show the status again whenever it changes, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl StatusArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        session.show_or_watch(self.watch, || {
            let ready = session.client.ready()?;
            let age = format!("{:.1} s", ready.age_seconds);
            let store = match ready.store {
                ChangeLogStatus::Diverged => "diverged; for details, run flux-resourceset-cli store".to_owned(),
                status => status.to_string(),
            };
            let mut facts = vec![
                ("server", session.client.url().to_owned()),
                ("selected by", session.origin.clone()),
                ("version", ready.version.clone()),
                ("revision", ready.revision.to_string()),
                ("snapshot age", age),
                ("store", store),
            ];
            // Problems need a valid token. Without one, the rest is still shown.
            let problems = session.client.problem_counts();
            facts.push(match &problems {
                Ok(counts) => ("problems", by_rule(counts)),
                Err(error) => ("problems", format!("unknown: {error}")),
            });
            let value = json!({
                "server": session.client.url(), "origin": session.origin, "version": ready.version,
                "revision": ready.revision, "age_seconds": ready.age_seconds, "store": ready.store,
                "problems": problems.as_ref().ok().map(|counts| counts.total),
                "problems_by_rule": problems.as_ref().ok().map(|counts| &counts.rules)
            });
            Ok(CommandOutput {
                value,
                names: vec![session.client.url().to_owned()],
                table: TextTable::default().facts(&facts),
            })
        })
    }
}

/// The number of problems, in total and by rule.
fn by_rule(counts: &ProblemCounts) -> String {
    let rules = counts.rules.iter().filter(|(_, count)| **count > 0);
    let mut rules: Vec<_> = rules.map(|(rule, count)| format!("{rule} {count}")).collect();
    rules.sort();
    if rules.is_empty() { counts.total.to_string() } else { format!("{} ({})", counts.total, rules.join(", ")) }
}

#[derive(Args)]
pub(crate) struct ProblemsArgs {
    /// Show only violations of this rule, such as missing-definition
    #[arg(long)]
    rule: Option<String>,
    /// Show only problems of documents of this type
    #[arg(long)]
    kind: Option<String>,
    /// Show only problems of documents with this id
    #[arg(long)]
    id: Option<String>,
    /// Maximum number of problems [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Show the problems again whenever they change, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl ProblemsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let filters = [("rule", &self.rule), ("kind", &self.kind), ("id", &self.id)];
        let filters = filters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let filters: Vec<_> = filters.collect();
        session.show_or_watch(self.watch, || {
            let (problems, total) = session.client.problems(&filters, self.limit)?;
            let column = |cell: fn(&DocumentProblem) -> String| problems.iter().map(cell).collect::<Vec<_>>();
            let names = column(|problem| format!("{}/{}", problem.kind, problem.id));
            let table = if total == 0 {
                TextTable::default().note("There are no problems.")
            } else {
                let table = TextTable::default()
                    .key("DOCUMENT", names.clone())
                    .column("RULE", column(|problem| problem.rule.to_string()))
                    .column("PLACE", column(|problem| problem.pointer.clone()))
                    .column("PROBLEM", column(|problem| problem.message.clone()));
                if problems.len() < total { table.note(format!("{} of {total}", problems.len())) } else { table }
            };
            Ok(CommandOutput { value: serde_json::to_value(&problems)?, names, table })
        })
    }
}
