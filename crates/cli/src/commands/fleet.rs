//! `fleet`: changes many clusters at once. Each command is one patch of all selected clusters, which the server plans
//! and makes as one change.

use std::process::ExitCode;

use api::{TypeDescription, WrittenChange};
use clap::{Args, Subcommand};
use client::Edit;
use model::{Map, Value};
use serde_json::json;

use crate::{
    commands::{references::reference_patch, versions::VersionsArgs},
    completion,
    consent::{Confirm, ConsentArgs},
    documents,
    failure::{CliError, Result},
    plan::counted,
    selector::Selector,
    session::Session,
    values::ValueArgs,
};

#[derive(Subcommand)]
pub(crate) enum FleetCommand {
    /// Change Helm values of a component on the selected clusters that have it
    Patch {
        /// Component id
        #[arg(add = completion::completer(completion::components))]
        component: String,
        #[command(flatten)]
        values: ValueArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Assign a document to the selected clusters
    Assign {
        #[command(flatten)]
        definition: DefinitionArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Remove a document from the selected clusters; Flux deletes what it rendered there
    Unassign {
        #[command(flatten)]
        definition: DefinitionArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Set the version of a component on the selected clusters that have it
    SetVersion {
        /// Component id
        #[arg(add = completion::completer(completion::components))]
        component: String,
        #[command(flatten)]
        version: VersionArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show which version of a component the clusters run
    Versions(VersionsArgs),
}

/// The type and id of a definition.
#[derive(Args)]
pub(crate) struct DefinitionArgs {
    /// Resource type, such as component
    #[arg(value_name = "TYPE", add = completion::completer(completion::types))]
    ty: String,
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
}

/// The overrides of a version.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct VersionArgs {
    /// Tag of the OCI artifact
    #[arg(long, value_name = "TAG")]
    oci_tag: Option<String>,
    /// Name of the Helm chart, or path in the OCI artifact
    #[arg(long, value_name = "PATH")]
    component_path: Option<String>,
    /// Remove the overrides, so that the values of the catalogue apply again
    #[arg(long, conflicts_with_all = ["oci_tag", "component_path"])]
    reset: bool,
}

/// The selected clusters, and the flags for confirmation.
#[derive(Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    clusters: ClusterSelection,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// A selector or all clusters. One of them is required, so that a forgotten selector does not change every cluster.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ClusterSelection {
    /// Select clusters that match all fields and labels, such as environment=dev,region=eu
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…")]
    selector: Option<Selector>,
    /// Select all clusters
    #[arg(long)]
    all: bool,
}

impl FleetCommand {
    pub(crate) fn run(self, session: &Session) -> Result<ExitCode> {
        match self {
            Self::Patch { component, values, target } => {
                let ty = session.definition_type("platform_component")?;
                let mut patch = Map::new();
                patch.insert("patches".to_owned(), json!({&component: values.patch()?}));
                target.patch(session, ty, &component, TargetScope::ClustersWithReference, patch)
            }
            Self::Assign { definition: DefinitionArgs { ty, id }, target } => {
                let ty = session.definition_type(&ty)?;
                target.patch(session, ty, &id, TargetScope::AllClusters, reference_patch(ty, documents::with_id(&id)))
            }
            Self::Unassign { definition: DefinitionArgs { ty, id }, target } => {
                let ty = session.definition_type(&ty)?;
                let mut removal = documents::with_id(&id);
                removal.insert("$patch".to_owned(), json!("delete"));
                target.patch(session, ty, &id, TargetScope::ClustersWithReference, reference_patch(ty, removal))
            }
            Self::SetVersion { component, version, target } => {
                let ty = session.definition_type("platform_component")?;
                let mut versioned = documents::with_id(&component);
                if version.oci_tag.is_some() {
                    warn_if_chart(session, ty, &component)?;
                }
                // Null removes an override.
                for (field, text) in [("oci_tag", version.oci_tag), ("component_path", version.component_path)] {
                    if text.is_some() || version.reset {
                        versioned.insert(field.to_owned(), json!(text));
                    }
                }
                target.patch(
                    session,
                    ty,
                    &component,
                    TargetScope::ClustersWithReference,
                    reference_patch(ty, versioned),
                )
            }
            Self::Versions(versions) => versions.run(session),
        }
    }
}

/// A tag has no effect on a chart of a Helm repository, whose version is in the catalogue.
fn warn_if_chart(session: &Session, ty: &TypeDescription, component: &str) -> Result<()> {
    let catalogue = session.with_suggestion(ty, component, session.client.get(ty, component, None))?.body;
    let url = catalogue.get("oci_url").and_then(Value::as_str).unwrap_or_default();
    if !url.starts_with("oci://") {
        session.message(&format!(
            "warning: {component} is a Helm chart of {url}: --oci-tag does not change its version on clusters; \
             set component_version of the component instead"
        ));
    }
    Ok(())
}

/// Whether a command applies only to clusters that refer to the definition.
#[derive(PartialEq, Eq)]
enum TargetScope {
    ClustersWithReference,
    AllClusters,
}

impl TargetArgs {
    /// Patches the selected clusters.
    fn patch(
        &self,
        session: &Session,
        ty: &TypeDescription,
        id: &str,
        scope: TargetScope,
        patch: Map,
    ) -> Result<ExitCode> {
        let clusters = session.cluster_type()?;
        session.with_suggestion(ty, id, session.client.get(ty, id, None))?;
        let mut filters = self.clusters.selector.as_ref().map(|selector| selector.query(clusters)).unwrap_or_default();
        if scope == TargetScope::ClustersWithReference {
            filters.push((ty.list.clone().unwrap_or_default(), id.to_owned()));
        }
        let selected = session.client.list(clusters, &filters)?.len();
        if selected == 0 {
            let with_reference = match scope {
                TargetScope::ClustersWithReference => format!(" that has {}/{id}", ty.kind),
                TargetScope::AllClusters => String::new(),
            };
            let none = if self.clusters.all { "there is no cluster" } else { "the selector matches no cluster" };
            let message = format!("{none}{with_reference}");
            return Err(CliError::failed(message)
                .hint("to see fields and labels, run flux-resourceset-cli cluster list -o wide"));
        }
        session.message(&format!("{} selected", counted(selected, "cluster")));
        let patch = Value::Object(patch);
        let edit = match filters.as_slice() {
            [] => Edit::patch_all(clusters, patch),
            filters => Edit::patch_many(clusters, filters, patch),
        };
        let Some(change) = self.consent.confirm_and_make(session, &edit, Confirm::OnChange)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let written: WrittenChange = serde_json::from_value(change.body.clone())?;
        let names: Vec<_> = written.documents.iter().map(|write| format!("{}/{}", write.kind, write.id)).collect();
        let sentence = match names.len() {
            0 => format!("nothing to change (revision {})", change.revision),
            count => format!("{} changed as revision {}", counted(count, "cluster"), change.revision),
        };
        session.out.report_done(&sentence, &names, &change.body)?;
        Ok(ExitCode::SUCCESS)
    }
}
