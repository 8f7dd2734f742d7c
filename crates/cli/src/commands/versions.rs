//! `fleet versions`: which clusters run what of a component.

use std::{collections::BTreeMap, process::ExitCode};

use api::TypeDescription;
use clap::Args;
use model::{Map, Value};
use serde_json::json;

use crate::{
    completion, documents, failure::Result, output::Shown, plan::shortened, selector::Selector, session::Session,
    table::Table, tag::Tag,
};

#[derive(Args)]
pub(crate) struct Versions {
    /// The component
    #[arg(add = completion::of(completion::components))]
    component: String,
    /// Only clusters for which all of this holds
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

/// A cluster's id and environment.
type Cluster = (String, String);

/// A cell of the table.
type Cell<'a> = &'a dyn Fn(&Running, &[Cluster]) -> String;

/// What clusters run: tag, version and path, and whether it is enabled.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    tag: Tag,
    version: Tag,
    path: String,
    enabled: bool,
    overridden: bool,
}

impl Versions {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let (ty, clusters) = (session.definition("platform_component")?, session.clusters()?);
        let list = ty.list.clone().unwrap_or_default();
        session.present(self.watch, || {
            let catalogue = session.about(ty, &self.component, session.client.get(ty, &self.component, None))?.body;
            let mut filters = self.selector.as_ref().map(|selector| selector.query(clusters)).unwrap_or_default();
            filters.push((list.clone(), self.component.clone()));
            let mut running: BTreeMap<Running, Vec<Cluster>> = BTreeMap::new();
            for cluster in session.client.list(clusters, &filters)? {
                let references = cluster.get(&list).and_then(Value::as_array).into_iter().flatten();
                for reference in references.filter(|reference| reference["id"] == self.component.as_str()) {
                    let environment = cluster.get("environment").and_then(Value::as_str).unwrap_or_default().to_owned();
                    let entry = running.entry(runs(ty, &catalogue, reference)).or_default();
                    entry.push((documents::id(&cluster).to_owned(), environment));
                }
            }
            Ok(shown(&running))
        })
    }
}

/// What a reference makes of the catalogue's entry.
fn runs(ty: &TypeDescription, catalogue: &Map, reference: &Value) -> Running {
    let text = |field: &str| {
        let default = || ty.field(field).and_then(|schema| schema.get("default"));
        let said = Some(&reference[field]).filter(|value| !value.is_null());
        said.or_else(|| catalogue.get(field)).or_else(default).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Running {
        tag: Tag::new(text("oci_tag")),
        version: Tag::new(text("component_version")),
        path: text("component_path"),
        enabled: reference["enabled"] != false,
        overridden: ["oci_tag", "component_path"].iter().any(|field| !reference[*field].is_null()),
    }
}

fn shown(running: &BTreeMap<Running, Vec<Cluster>>) -> Shown {
    if running.is_empty() {
        return Shown { value: json!([]), names: Vec::new(), table: Table::default().note("No cluster has it.") };
    }
    let column = |of: Cell<'_>| running.iter().map(|(running, clusters)| of(running, clusters)).collect::<Vec<_>>();
    let environments = |clusters: &[Cluster]| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, environment) in clusters {
            *counts.entry(environment).or_default() += 1;
        }
        counts.iter().map(|(environment, count)| format!("{environment}:{count}")).collect::<Vec<_>>().join(" ")
    };
    let ids = |clusters: &[Cluster]| clusters.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let table = Table::default()
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
    Shown { value: value.collect(), names, table }
}
