//! `inputs`: the inputs that a cluster gets when it polls.

use std::process::ExitCode;

use clap::Args;
use model::{Map, Value};

use crate::{completion, documents::brief, failure::Result, output::CommandOutput, session::Session, table::TextTable};

#[derive(Args)]
pub(crate) struct InputsArgs {
    /// Cluster id
    #[arg(add = completion::completer(completion::clusters))]
    cluster: String,
    /// Show only inputs of this resource type
    #[arg(value_name = "TYPE", add = completion::completer(completion::types))]
    ty: Option<String>,
    /// Show the inputs at this revision
    #[arg(long, conflicts_with = "watch")]
    revision: Option<u64>,
    /// Show the inputs again whenever they change, until interrupted
    #[arg(short, long)]
    watch: bool,
}

impl InputsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let types = session.definition_types(self.ty.as_deref())?;
        let clusters = session.cluster_type()?;
        session.show_or_watch(self.watch, || {
            let mut answers = Vec::new();
            for ty in &types {
                let answer = session.client.inputs(&self.cluster, ty, self.revision);
                answers.push((ty.path.clone(), session.with_suggestion(clusters, &self.cluster, answer)?));
            }
            Ok(command_output(answers, self.ty.is_some()))
        })
    }
}

/// The answers by type; with `single`, the answer as Flux gets it.
pub(crate) fn command_output(answers: Vec<(String, Value)>, single: bool) -> CommandOutput {
    let rows: Vec<(String, Map)> =
        answers.iter().flat_map(|(path, answer)| list(answer).map(|input| (path.clone(), input.clone()))).collect();
    let id = |input: &Map| input.get("id").map(brief).unwrap_or_default();
    // The identity of the cluster is the same in all inputs, and values repeat the patches.
    let summary = |input: &Map| {
        let mut input = input.clone();
        for omitted in ["id", "cluster", "values"] {
            input.shift_remove(omitted);
        }
        brief(&Value::Object(input))
    };
    let table = if rows.is_empty() {
        TextTable::default().note("The cluster has no inputs.")
    } else {
        TextTable::default()
            .key("TYPE", rows.iter().map(|(path, _)| path.clone()))
            .key("ID", rows.iter().map(|(_, input)| id(input)))
            .column("INPUT", rows.iter().map(|(_, input)| summary(input)))
    };
    let names = rows.iter().map(|(path, input)| format!("{path}/{}", id(input))).collect();
    let mut answers = answers;
    let value = match (single, answers.len()) {
        (true, 1) => answers.remove(0).1,
        _ => Value::Object(answers.into_iter().collect()),
    };
    CommandOutput { value, names, table }
}

/// The inputs of an answer.
pub(crate) fn list(answer: &Value) -> impl Iterator<Item = &Map> {
    answer.get("inputs").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}
