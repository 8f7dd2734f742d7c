//! `explain`: where each value of an input comes from, and which change by whom set it.
//!
//! What is explained is the input that the cluster is served. A value is looked for where the merge looks: in the
//! cluster's reference, in the definition, in the type's defaults; patches stand for themselves. Its change is the oldest
//! of the last unbroken run of changes after which the document said the same there.

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
    failure::{Failure, Outcome, Result},
    output::Shown,
    session::Session,
    table::Table,
};

#[derive(Args)]
pub(crate) struct Explain {
    /// The cluster
    #[arg(add = completion::of(completion::clusters))]
    cluster: String,
    /// The component, or the id of what else is explained
    #[arg(value_name = "COMPONENT", add = completion::of(completion::components))]
    id: String,
    /// The type, where it is not a component
    #[arg(long = "type", value_name = "TYPE", default_value = "platform_component", add = completion::of(completion::types))]
    ty: String,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Catalogue,
    Override,
    Patch,
    Default,
    Cluster,
    Computed,
}

/// A value, where it comes from, and the change that set it.
#[derive(Serialize)]
struct Explained {
    field: String,
    value: Value,
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeHeading>,
}

impl Explain {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let (ty, clusters) = (session.definition(&self.ty)?, session.clusters()?);
        session.present(self.watch, || {
            let answer = session.client.inputs(&self.cluster, ty, None);
            let answer = session.about(clusters, &self.cluster, answer)?;
            let input = list(&answer).find(|input| input.get("id") == Some(&json!(self.id)));
            let input = input.ok_or_else(|| {
                let message = format!("cluster/{} has no {} \"{}\"", self.cluster, ty.kind, self.id);
                let hint = format!("flux-resourceset-cli inputs {} {} shows what it has", self.cluster, ty.path);
                Failure::new(Outcome::NotFound, message).hint(hint)
            })?;
            let story = Story {
                ty,
                id: &self.id,
                definition: session.client.history(ty, &self.id)?,
                cluster: session.client.history(clusters, &self.cluster)?,
                cluster_name: format!("cluster/{}", self.cluster),
            };
            shown(&story.explain(input))
        })
    }
}

/// Both documents and their pasts.
struct Story<'a> {
    ty: &'a TypeDescription,
    id: &'a str,
    definition: Vec<HistoryEntry>,
    cluster: Vec<HistoryEntry>,
    cluster_name: String,
}

impl Story<'_> {
    fn explain(&self, input: &Map) -> Vec<Explained> {
        let mut explained = Vec::new();
        for (name, value) in input {
            match (name.as_str(), value) {
                // Values say again what patches say.
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

    /// A field of the merge: the reference before the definition before the default.
    fn field(&self, shown: &str, name: &str, value: &Value) -> Explained {
        let in_reference = |cluster: &Value| self.reference(cluster).and_then(|reference| reference.get(name)).cloned();
        let in_definition = |definition: &Value| definition.get(name).cloned();
        let now = |history: &[HistoryEntry], at: &dyn Fn(&Value) -> Option<Value>| {
            history.first().and_then(|entry| entry.body.as_ref()).and_then(at).filter(|value| !value.is_null())
        };
        let (source, document, change) = if name == "id" || now(&self.cluster, &in_reference).is_none() {
            match now(&self.definition, &in_definition) {
                Some(_) => {
                    let document = self.ty.name(self.id);
                    (Source::Catalogue, Some(document), set_by(&self.definition, &in_definition))
                }
                None if self.ty.field(name).is_some() || name == "enabled" => (Source::Default, None, None),
                None => (Source::Computed, None, None),
            }
        } else {
            (Source::Override, Some(self.cluster_name.clone()), set_by(&self.cluster, &in_reference))
        };
        Explained { field: shown.to_owned(), value: value.clone(), source, document, change }
    }

    fn patch(&self, path: &str, value: &Value) -> Explained {
        let at = |cluster: &Value| cluster.get("patches")?.get(self.id)?.get(path).cloned();
        self.of_cluster(format!("patches.{path}"), value, Source::Patch, &at)
    }

    fn identity(&self, name: &str, value: &Value) -> Explained {
        let field = match name {
            "name" => "cluster_name",
            "dns" => "cluster_dns",
            other => other,
        };
        let at = |cluster: &Value| cluster.get(field).cloned();
        self.of_cluster(format!("cluster.{name}"), value, Source::Cluster, &at)
    }

    fn of_cluster(
        &self,
        field: String,
        value: &Value,
        source: Source,
        at: &dyn Fn(&Value) -> Option<Value>,
    ) -> Explained {
        let document = Some(self.cluster_name.clone());
        Explained { field, value: value.clone(), source, document, change: set_by(&self.cluster, at) }
    }

    /// What the cluster says of the definition.
    fn reference<'a>(&self, cluster: &'a Value) -> Option<&'a Value> {
        let references = cluster.get(self.ty.list.as_deref()?)?.as_array()?;
        references.iter().find(|reference| reference["id"] == self.id)
    }
}

/// The change that set a value: going back in time, the last one after which it was what it is now.
fn set_by(history: &[HistoryEntry], at: &dyn Fn(&Value) -> Option<Value>) -> Option<ChangeHeading> {
    let value = |entry: &HistoryEntry| entry.body.as_ref().filter(|_| entry.op.as_deref() == Some("put")).and_then(at);
    let now = value(history.first()?)?;
    history.iter().take_while(|entry| value(entry).as_ref() == Some(&now)).last().map(|entry| entry.heading.clone())
}

fn shown(explained: &[Explained]) -> Result<Shown> {
    let column = |of: &dyn Fn(&Explained) -> String| explained.iter().map(of).collect::<Vec<_>>();
    let change = |of: &dyn Fn(&ChangeHeading) -> String| {
        column(&|explained| explained.change.as_ref().map_or_else(|| "-".to_owned(), of))
    };
    let table = Table::default()
        .key("FIELD", column(&|explained| explained.field.clone()))
        .column("VALUE", column(&|explained| brief(&explained.value)))
        .column("FROM", column(&|explained| brief(&json!(explained.source))))
        .column("REVISION", change(&|heading| heading.revision.to_string()))
        .column("ACTOR", change(&|heading| heading.actor.clone()))
        .wide("TIME", change(&|heading| time(&heading.at)))
        .wide("REASON", change(&|heading| heading.reason.clone().unwrap_or_default()))
        .wide("DOCUMENT", column(&|explained| explained.document.clone().unwrap_or_default()));
    let names = column(&|explained| explained.field.clone());
    Ok(Shown { value: serde_json::to_value(explained)?, names, table })
}
