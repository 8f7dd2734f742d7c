//! `explain`: the source of each value of an input, the change that set it, and the actor.
//!
//! The server says which source won each value and which values it hides. Here the change is added that set a value: the oldest one
//! since which the document of the source has contained the present value without interruption.

use std::process::ExitCode;

use api::{ChangeHeading, Explanation, HistoryEntry, SourceKind, TypeDescription, ValueSource};
use clap::Args;
use model::Value;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    commands::changes::time,
    completion,
    documents::brief,
    failure::{CliError, CliErrorKind, Result},
    output::CommandOutput,
    session::Session,
    table::TextTable,
};

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// Cluster id
    #[arg(add = completion::completer(completion::clusters))]
    cluster: String,
    /// Id of the component, or of a document of another type
    #[arg(value_name = "COMPONENT", add = completion::completer(completion::components))]
    id: String,
    /// Resource type of the document
    #[arg(long = "type", value_name = "TYPE", default_value = "platform_component", add = completion::completer(completion::types))]
    ty: String,
    /// Show the values again whenever they change, until interrupted
    #[arg(short, long)]
    watch: bool,
}

/// A value of the input, and the values that it hides.
#[derive(Serialize)]
struct ExplainedRow {
    field: String,
    #[serde(flatten)]
    served: SourcedValue,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<SourcedValue>,
}

/// A value, its source, and the change that set it.
#[derive(Serialize)]
struct SourcedValue {
    value: Value,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeHeading>,
}

impl ExplainArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let (ty, clusters) = (session.definition_type(&self.ty)?, session.cluster_type()?);
        session.show_or_watch(self.watch, || {
            let explanation = session.client.explain(&self.cluster, ty, &self.id);
            let explanation = session.with_suggestion(clusters, &self.cluster, explanation);
            let explanation = explanation.map_err(|error| self.with_next_step(error, ty))?;
            let histories = Histories {
                ty,
                id: &self.id,
                definition: session.client.history(ty, &self.id)?,
                cluster: session.client.history(clusters, &self.cluster)?,
            };
            command_output(&histories.rows(&explanation)?)
        })
    }

    /// A cluster that is served no such input is an error that has no next step yet.
    fn with_next_step(&self, error: CliError, ty: &TypeDescription) -> CliError {
        if !error.is(CliErrorKind::NotFound) || error.has_hint() {
            return error;
        }
        let message = format!("cluster/{} has no {} \"{}\"", self.cluster, ty.kind, self.id);
        let hint = format!("to list its inputs, run flux-resourceset-cli inputs {} {}", self.cluster, ty.path);
        CliError::new(CliErrorKind::NotFound, message).hint(hint)
    }
}

/// The histories of the two documents that an input is made of.
struct Histories<'a> {
    ty: &'a TypeDescription,
    id: &'a str,
    definition: Vec<HistoryEntry>,
    cluster: Vec<HistoryEntry>,
}

impl Histories<'_> {
    fn rows(&self, explanation: &Explanation) -> Result<Vec<ExplainedRow>> {
        let shown = explanation.fields.iter().filter(|field| !self.is_left_out(&field.pointer));
        let rows = shown.map(|field| {
            let path: Vec<_> = field.pointer.split('/').skip(1).map(unescaped).collect();
            let name = path.last().map_or("", String::as_str);
            let hidden = field.hidden.iter().map(|hidden| self.sourced(&hidden.value, &hidden.source, name));
            Ok(ExplainedRow {
                field: path.join("."),
                served: self.sourced(&field.value, &field.source, name)?,
                hidden: hidden.collect::<Result<_>>()?,
            })
        });
        rows.collect()
    }

    /// Values contain the same as patches, and objects without members have nothing to show.
    fn is_left_out(&self, pointer: &str) -> bool {
        let name = pointer.strip_prefix('/').unwrap_or_default();
        self.ty.nest.contains_key(name) || (self.ty.patchable && matches!(name, "values" | "patches"))
    }

    fn sourced(&self, value: &RawValue, source: &ValueSource, name: &str) -> Result<SourcedValue> {
        Ok(SourcedValue {
            value: serde_json::from_str(value.get())?,
            source: word(source.kind),
            document: source.document.as_ref().map(|document| format!("{}/{}", document.kind, document.id)),
            change: self.set_by(source, name),
        })
    }

    /// The change that set a value: the oldest one since which the value has not changed.
    fn set_by(&self, source: &ValueSource, name: &str) -> Option<ChangeHeading> {
        let history = if source.kind == SourceKind::Definition { &self.definition } else { &self.cluster };
        // Changes after the explanation are not part of it.
        let explained = source.document.as_ref()?.revision;
        let mut history = history.iter().skip_while(|entry| entry.heading.revision > explained).peekable();
        let value = |entry: &&HistoryEntry| {
            let body = entry.body.as_ref().filter(|_| entry.op.as_deref() == Some("put"));
            body.and_then(|body| self.value_in(body, source.kind, name)).cloned()
        };
        let current = history.peek().and_then(value)?;
        history.take_while(|entry| value(entry).as_ref() == Some(&current)).last().map(|entry| entry.heading.clone())
    }

    /// Where a document has the value of a source.
    fn value_in<'a>(&self, body: &'a Value, source: SourceKind, name: &str) -> Option<&'a Value> {
        match source {
            SourceKind::Definition => body.get(name),
            SourceKind::Reference => {
                let references = body.get(self.ty.list.as_deref()?)?.as_array()?;
                references.iter().find(|reference| reference["id"] == self.id)?.get(name)
            }
            SourceKind::Patch => body.get("patches")?.get(self.id)?.get(name),
            SourceKind::Cluster => body.get(match name {
                "name" => "cluster_name",
                "dns" => "cluster_dns",
                other => other,
            }),
            SourceKind::Default | SourceKind::Computed => None,
        }
    }
}

/// The word for a source in tables and in JSON.
fn word(source: SourceKind) -> &'static str {
    match source {
        SourceKind::Default => "default",
        SourceKind::Definition => "catalogue",
        SourceKind::Reference => "override",
        SourceKind::Patch => "patch",
        SourceKind::Cluster => "cluster",
        SourceKind::Computed => "computed",
    }
}

/// A step of a JSON pointer as the name that it stands for.
fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn command_output(rows: &[ExplainedRow]) -> Result<CommandOutput> {
    let column = |cell: &dyn Fn(&ExplainedRow) -> String| rows.iter().map(cell).collect::<Vec<_>>();
    let change = |cell: &dyn Fn(&ChangeHeading) -> String| {
        column(&|row| row.served.change.as_ref().map_or_else(|| "-".to_owned(), cell))
    };
    let hidden = |row: &ExplainedRow| {
        let values = row.hidden.iter().map(|hidden| format!("{} ({})", brief(&hidden.value), hidden.source));
        values.collect::<Vec<_>>().join(", ")
    };
    let table = TextTable::default()
        .key("FIELD", column(&|row| row.field.clone()))
        .column("VALUE", column(&|row| brief(&row.served.value)))
        .column("FROM", column(&|row| row.served.source.to_owned()))
        .column("REVISION", change(&|heading| heading.revision.to_string()))
        .column("ACTOR", change(&|heading| heading.actor.clone()))
        .wide("TIME", change(&|heading| time(&heading.at)))
        .wide("REASON", change(&|heading| heading.reason.clone().unwrap_or_default()))
        .wide("DOCUMENT", column(&|row| row.served.document.clone().unwrap_or_default()))
        .wide("HIDES", column(&hidden));
    let names = column(&|row| row.field.clone());
    Ok(CommandOutput { value: serde_json::to_value(rows)?, names, table })
}
