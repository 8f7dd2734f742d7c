//! `fleet versions`: the versions of a component, and the clusters that run each of them.

use std::{collections::BTreeMap, process::ExitCode};

use api::TypeDescription;
use clap::Args;
use model::{Map, Value};
use serde_json::json;

use crate::{
    completion, documents, failure::Result, output::CommandOutput, plan::shortened, selector::Selector,
    session::Session, table::TextTable, tag::VersionTag,
};

#[derive(Args)]
pub(crate) struct VersionsArgs {
    /// Component id
    #[arg(add = completion::completer(completion::components))]
    component: String,
    /// Show only clusters that match all fields and labels, such as environment=dev,region=eu
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
    /// Show the versions again whenever they change, until interrupted
    #[arg(short, long)]
    watch: bool,
}

/// The id and environment of a cluster.
type ClusterWithEnvironment = (String, String);

/// Formats a cell of the table.
type CellFormatter<'a> = &'a dyn Fn(&RunningVersion, &[ClusterWithEnvironment]) -> String;

/// A version that clusters run: tag, chart version and path, and whether the component is enabled.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RunningVersion {
    tag: VersionTag,
    version: VersionTag,
    path: String,
    enabled: bool,
    overridden: bool,
}

impl VersionsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let (ty, clusters) = (session.definition_type("platform_component")?, session.cluster_type()?);
        let list = ty.list.clone().unwrap_or_default();
        session.show_or_watch(self.watch, || {
            let catalogue =
                session.with_suggestion(ty, &self.component, session.client.get(ty, &self.component, None))?.body;
            let mut filters = self.selector.as_ref().map(|selector| selector.query(clusters)).unwrap_or_default();
            filters.push((list.clone(), self.component.clone()));
            let mut running: BTreeMap<RunningVersion, Vec<ClusterWithEnvironment>> = BTreeMap::new();
            for cluster in session.client.list(clusters, &filters)? {
                let references = cluster.get(&list).and_then(Value::as_array).into_iter().flatten();
                for reference in references.filter(|reference| reference["id"] == self.component.as_str()) {
                    let environment = cluster.get("environment").and_then(Value::as_str).unwrap_or_default().to_owned();
                    let entry = running.entry(running_version(ty, &catalogue, reference)).or_default();
                    entry.push((documents::id(&cluster).to_owned(), environment));
                }
            }
            Ok(command_output(&running))
        })
    }
}

/// The version that results from the catalogue and the overrides of a reference.
fn running_version(ty: &TypeDescription, catalogue: &Map, reference: &Value) -> RunningVersion {
    let text = |field: &str| {
        let default = || ty.field(field).and_then(|schema| schema.get("default"));
        let overridden = Some(&reference[field]).filter(|value| !value.is_null());
        overridden
            .or_else(|| catalogue.get(field))
            .or_else(default)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    RunningVersion {
        tag: VersionTag::new(text("oci_tag")),
        version: VersionTag::new(text("component_version")),
        path: text("component_path"),
        enabled: reference["enabled"] != false,
        overridden: ["oci_tag", "component_path"].iter().any(|field| !reference[*field].is_null()),
    }
}

fn command_output(running: &BTreeMap<RunningVersion, Vec<ClusterWithEnvironment>>) -> CommandOutput {
    if running.is_empty() {
        return CommandOutput {
            value: json!([]),
            names: Vec::new(),
            table: TextTable::default().note("No cluster has this component."),
        };
    }
    let column =
        |cell: CellFormatter<'_>| running.iter().map(|(running, clusters)| cell(running, clusters)).collect::<Vec<_>>();
    let environments = |clusters: &[ClusterWithEnvironment]| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, environment) in clusters {
            *counts.entry(environment).or_default() += 1;
        }
        counts.iter().map(|(environment, count)| format!("{environment}:{count}")).collect::<Vec<_>>().join(" ")
    };
    let ids = |clusters: &[ClusterWithEnvironment]| clusters.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let table = TextTable::default()
        .key("TAG", column(&|running, _| running.tag.to_string()))
        .column("VERSION", column(&|running, _| running.version.to_string()))
        .column("PATH", column(&|running, _| running.path.clone()))
        .column(
            "FROM",
            column(&|running, _| match (running.enabled, running.overridden) {
                (false, _) => "disabled".to_owned(),
                (true, true) => "override".to_owned(),
                (true, false) => "catalogue".to_owned(),
            }),
        )
        .column("CLUSTERS", column(&|_, clusters| clusters.len().to_string()))
        .column("ENVIRONMENTS", column(&|_, clusters| environments(clusters)))
        .wide("IDS", column(&|_, clusters| shortened(&ids(clusters), 100)));
    let value = running.iter().map(|(running, clusters)| {
        let clusters: Vec<_> =
            clusters.iter().map(|(id, environment)| json!({"id": id, "environment": environment})).collect();
        json!({
            "oci_tag": running.tag.to_string(), "component_version": running.version.to_string(),
            "component_path": running.path, "enabled": running.enabled, "overridden": running.overridden,
            "clusters": clusters
        })
    });
    let names = running.values().flatten().map(|(id, _)| format!("cluster/{id}")).collect();
    CommandOutput { value: value.collect(), names, table }
}
