//! `inputs`: what a cluster is told when it polls.

use std::process::ExitCode;

use clap::Args;
use model::{Map, Value};

use crate::{completion, documents::brief, failure::Result, output::Shown, session::Session, table::Table};

#[derive(Args)]
pub(crate) struct Inputs {
    /// The cluster
    #[arg(add = completion::of(completion::clusters))]
    cluster: String,
    /// Only this type
    #[arg(value_name = "TYPE", add = completion::of(completion::types))]
    ty: Option<String>,
    /// What it was told at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl Inputs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let types = session.definitions(self.ty.as_deref())?;
        let clusters = session.clusters()?;
        session.present(self.watch, || {
            let mut answers = Vec::new();
            for ty in &types {
                let answer = session.client.inputs(&self.cluster, ty, self.revision);
                answers.push((ty.path.clone(), session.about(clusters, &self.cluster, answer)?));
            }
            Ok(shown(answers, self.ty.is_some()))
        })
    }
}

/// Answers by type; that of one type as Flux gets it.
pub(crate) fn shown(answers: Vec<(String, Value)>, single: bool) -> Shown {
    let rows: Vec<(String, Map)> =
        answers.iter().flat_map(|(path, answer)| list(answer).map(|input| (path.clone(), input.clone()))).collect();
    let id = |input: &Map| input.get("id").map(brief).unwrap_or_default();
    // The identity of the cluster is the same in all of them; values say again what patches say.
    let said = |input: &Map| {
        let mut input = input.clone();
        for known in ["id", "cluster", "values"] {
            input.shift_remove(known);
        }
        brief(&Value::Object(input))
    };
    let table = if rows.is_empty() {
        Table::default().note("There are no inputs.")
    } else {
        Table::default()
            .key("TYPE", rows.iter().map(|(path, _)| path.clone()))
            .key("ID", rows.iter().map(|(_, input)| id(input)))
            .column("INPUT", rows.iter().map(|(_, input)| said(input)))
    };
    let names = rows.iter().map(|(path, input)| format!("{path}/{}", id(input))).collect();
    let mut answers = answers;
    let value = match (single, answers.len()) {
        (true, 1) => answers.remove(0).1,
        _ => Value::Object(answers.into_iter().collect()),
    };
    Shown { value, names, table }
}

/// The inputs of an answer.
pub(crate) fn list(answer: &Value) -> impl Iterator<Item = &Map> {
    answer.get("inputs").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}
