//! `explain`: the source of each value of an input, the change that set it, and the actor.
//!
//! It explains the input that the cluster gets. A value is searched in the order of the merge: the reference of the
//! cluster, the definition, the defaults of the type; patches are listed separately. The change that set a value is the
//! oldest one since which the document has contained the present value without interruption.

use std::process::ExitCode;

use api::{ChangeHeading, HistoryEntry, TypeDescription};
use clap::Args;
use model::{Map, Value};
use serde::Serialize;
use serde_json::json;

use crate::{
    commands::{changes::time, inputs::list},
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

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ValueSource {
    Catalogue,
    Override,
    Patch,
    Default,
    Cluster,
    Computed,
}

/// A value, its source, and the change that set it.
#[derive(Serialize)]
struct ExplainedValue {
    field: String,
    value: Value,
    source: ValueSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeHeading>,
}

impl ExplainArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let (ty, clusters) = (session.definition_type(&self.ty)?, session.cluster_type()?);
        session.show_or_watch(self.watch, || {
            let answer = session.client.inputs(&self.cluster, ty, None);
            let answer = session.with_suggestion(clusters, &self.cluster, answer)?;
            let input = list(&answer).find(|input| input.get("id") == Some(&json!(self.id)));
            let input = input.ok_or_else(|| {
                let message = format!("cluster/{} has no {} \"{}\"", self.cluster, ty.kind, self.id);
                let hint = format!("to list its inputs, run flux-resourceset-cli inputs {} {}", self.cluster, ty.path);
                CliError::new(CliErrorKind::NotFound, message).hint(hint)
            })?;
            let history = InputHistory {
                ty,
                id: &self.id,
                definition: session.client.history(ty, &self.id)?,
                cluster: session.client.history(clusters, &self.cluster)?,
                cluster_name: format!("cluster/{}", self.cluster),
            };
            command_output(&history.explain(input))
        })
    }
}

/// The histories of the two documents that an input is made of.
struct InputHistory<'a> {
    ty: &'a TypeDescription,
    id: &'a str,
    definition: Vec<HistoryEntry>,
    cluster: Vec<HistoryEntry>,
    cluster_name: String,
}

impl InputHistory<'_> {
    fn explain(&self, input: &Map) -> Vec<ExplainedValue> {
        let mut explained = Vec::new();
        for (name, value) in input {
            match (name.as_str(), value) {
                // Values contain the same as patches.
                ("values", _) if self.ty.patchable => {}
                ("patches", Value::Object(patches)) if self.ty.patchable => {
                    explained.extend(patches.iter().map(|(path, value)| self.patch(path, value)));
                }
                ("cluster", Value::Object(identity)) => {
                    explained.extend(identity.iter().map(|(name, value)| self.identity(name, value)));
                }
                (nest, Value::Object(fields)) if self.ty.nest.contains_key(nest) => {
                    explained
                        .extend(fields.iter().map(|(name, value)| self.field(&format!("{nest}.{name}"), name, value)));
                }
                (name, value) => explained.push(self.field(name, name, value)),
            }
        }
        explained
    }

    /// A merged field: the reference wins over the definition, and the definition over the default.
    fn field(&self, shown: &str, name: &str, value: &Value) -> ExplainedValue {
        let in_reference = |cluster: &Value| self.reference(cluster).and_then(|reference| reference.get(name)).cloned();
        let in_definition = |definition: &Value| definition.get(name).cloned();
        let current = |history: &[HistoryEntry], at: &dyn Fn(&Value) -> Option<Value>| {
            history.first().and_then(|entry| entry.body.as_ref()).and_then(at).filter(|value| !value.is_null())
        };
        let (source, document, change) = if name == "id" || current(&self.cluster, &in_reference).is_none() {
            match current(&self.definition, &in_definition) {
                Some(_) => {
                    let document = self.ty.name(self.id);
                    (ValueSource::Catalogue, Some(document), set_by(&self.definition, &in_definition))
                }
                None if self.ty.field(name).is_some() || name == "enabled" => (ValueSource::Default, None, None),
                None => (ValueSource::Computed, None, None),
            }
        } else {
            (ValueSource::Override, Some(self.cluster_name.clone()), set_by(&self.cluster, &in_reference))
        };
        ExplainedValue { field: shown.to_owned(), value: value.clone(), source, document, change }
    }

    fn patch(&self, path: &str, value: &Value) -> ExplainedValue {
        let at = |cluster: &Value| cluster.get("patches")?.get(self.id)?.get(path).cloned();
        self.cluster_value(format!("patches.{path}"), value, ValueSource::Patch, &at)
    }

    fn identity(&self, name: &str, value: &Value) -> ExplainedValue {
        let field = match name {
            "name" => "cluster_name",
            "dns" => "cluster_dns",
            other => other,
        };
        let at = |cluster: &Value| cluster.get(field).cloned();
        self.cluster_value(format!("cluster.{name}"), value, ValueSource::Cluster, &at)
    }

    fn cluster_value(
        &self,
        field: String,
        value: &Value,
        source: ValueSource,
        at: &dyn Fn(&Value) -> Option<Value>,
    ) -> ExplainedValue {
        let document = Some(self.cluster_name.clone());
        ExplainedValue { field, value: value.clone(), source, document, change: set_by(&self.cluster, at) }
    }

    /// The reference of the cluster to the definition.
    fn reference<'a>(&self, cluster: &'a Value) -> Option<&'a Value> {
        let references = cluster.get(self.ty.list.as_deref()?)?.as_array()?;
        references.iter().find(|reference| reference["id"] == self.id)
    }
}

/// The change that set a value: the oldest one since which the value has not changed.
fn set_by(history: &[HistoryEntry], at: &dyn Fn(&Value) -> Option<Value>) -> Option<ChangeHeading> {
    let value = |entry: &HistoryEntry| entry.body.as_ref().filter(|_| entry.op.as_deref() == Some("put")).and_then(at);
    let current = value(history.first()?)?;
    history.iter().take_while(|entry| value(entry).as_ref() == Some(&current)).last().map(|entry| entry.heading.clone())
}

fn command_output(explained: &[ExplainedValue]) -> Result<CommandOutput> {
    let column = |cell: &dyn Fn(&ExplainedValue) -> String| explained.iter().map(cell).collect::<Vec<_>>();
    let change = |cell: &dyn Fn(&ChangeHeading) -> String| {
        column(&|explained| explained.change.as_ref().map_or_else(|| "-".to_owned(), cell))
    };
    let table = TextTable::default()
        .key("FIELD", column(&|explained| explained.field.clone()))
        .column("VALUE", column(&|explained| brief(&explained.value)))
        .column("FROM", column(&|explained| brief(&json!(explained.source))))
        .column("REVISION", change(&|heading| heading.revision.to_string()))
        .column("ACTOR", change(&|heading| heading.actor.clone()))
        .wide("TIME", change(&|heading| time(&heading.at)))
        .wide("REASON", change(&|heading| heading.reason.clone().unwrap_or_default()))
        .wide("DOCUMENT", column(&|explained| explained.document.clone().unwrap_or_default()));
    let names = column(&|explained| explained.field.clone());
    Ok(CommandOutput { value: serde_json::to_value(explained)?, names, table })
}
