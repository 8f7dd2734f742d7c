//! `fleet`: many clusters at once. A command is one patch over all clusters that the selector takes, so it is planned
//! and made by the server as one change.

use std::process::ExitCode;

use api::{TypeDescription, WrittenChange};
use clap::{Args, Subcommand};
use client::Edit;
use model::{Map, Value};
use serde_json::json;

use crate::{
    commands::{references::reference, versions::Versions},
    completion,
    consent::{Asked, Consent},
    documents,
    failure::{Failure, Result},
    plan::counted,
    selector::Selector,
    session::Session,
    settings::Values,
};

#[derive(Subcommand)]
pub(crate) enum Fleet {
    /// Change the values of a component on every cluster that has it
    Patch {
        /// The component
        #[arg(add = completion::of(completion::components))]
        component: String,
        #[command(flatten)]
        values: Values,
        #[command(flatten)]
        target: Target,
    },
    /// Give clusters a document
    Assign {
        #[command(flatten)]
        definition: Definition,
        #[command(flatten)]
        target: Target,
    },
    /// Take a document away from clusters
    Unassign {
        #[command(flatten)]
        definition: Definition,
        #[command(flatten)]
        target: Target,
    },
    /// Set the version of a component on every cluster that has it
    SetVersion {
        /// The component
        #[arg(add = completion::of(completion::components))]
        component: String,
        #[command(flatten)]
        version: Version,
        #[command(flatten)]
        target: Target,
    },
    /// Which clusters run what of a component
    Versions(Versions),
}

/// A type and an id.
#[derive(Args)]
pub(crate) struct Definition {
    /// A resource type
    #[arg(value_name = "TYPE", add = completion::of(completion::types))]
    ty: String,
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
}

/// What a cluster overrides.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Version {
    /// The artifact's tag
    #[arg(long, value_name = "TAG")]
    oci_tag: Option<String>,
    /// The chart's name, or the path in the artifact
    #[arg(long, value_name = "PATH")]
    component_path: Option<String>,
    /// Go back to what the catalogue says
    #[arg(long, conflicts_with_all = ["oci_tag", "component_path"])]
    reset: bool,
}

/// Which clusters, and whether to ask.
#[derive(Args)]
pub(crate) struct Target {
    /// Only clusters for which all of this holds: fields and labels, as environment=dev,region=eu
    #[arg(short = 'l', long, value_name = "KEY=VALUE,…", required_unless_present = "all")]
    selector: Option<Selector>,
    /// Every cluster
    #[arg(long, conflicts_with = "selector")]
    all: bool,
    #[command(flatten)]
    consent: Consent,
}

impl Fleet {
    pub(crate) fn run(self, session: &Session) -> Result<ExitCode> {
        match self {
            Self::Patch { component, values, target } => {
                let ty = session.definition("platform_component")?;
                let mut patch = Map::new();
                patch.insert("patches".to_owned(), json!({&component: values.patch()?}));
                target.patch(session, ty, &component, Having::Yes, patch)
            }
            Self::Assign { definition: Definition { ty, id }, target } => {
                let ty = session.definition(&ty)?;
                target.patch(session, ty, &id, Having::Either, reference(ty, documents::with_id(&id)))
            }
            Self::Unassign { definition: Definition { ty, id }, target } => {
                let ty = session.definition(&ty)?;
                let mut gone = documents::with_id(&id);
                gone.insert("$patch".to_owned(), json!("delete"));
                target.patch(session, ty, &id, Having::Yes, reference(ty, gone))
            }
            Self::SetVersion { component, version, target } => {
                let ty = session.definition("platform_component")?;
                let mut versioned = documents::with_id(&component);
                if version.oci_tag.is_some() {
                    warn_of_charts(session, ty, &component)?;
                }
                // Null takes an override away.
                for (field, text) in [("oci_tag", version.oci_tag), ("component_path", version.component_path)] {
                    if text.is_some() || version.reset {
                        versioned.insert(field.to_owned(), json!(text));
                    }
                }
                target.patch(session, ty, &component, Having::Yes, reference(ty, versioned))
            }
            Self::Versions(versions) => versions.run(session),
        }
    }
}

/// A tag is for artifacts: a chart's version is the catalogue's.
fn warn_of_charts(session: &Session, ty: &TypeDescription, component: &str) -> Result<()> {
    let catalogue = session.about(ty, component, session.client.get(ty, component, None))?.body;
    let url = catalogue.get("oci_url").and_then(Value::as_str).unwrap_or_default();
    if !url.starts_with("oci://") {
        session.say(&format!(
            "{component} is a Helm chart of {url}: its tag changes nothing on clusters, its component_version would"
        ));
    }
    Ok(())
}

/// Whether clusters are meant that do not have the definition.
#[derive(PartialEq, Eq)]
enum Having {
    Yes,
    Either,
}

impl Target {
    /// Lays one patch over the clusters that are meant.
    fn patch(&self, session: &Session, ty: &TypeDescription, id: &str, having: Having, patch: Map) -> Result<ExitCode> {
        let clusters = session.clusters()?;
        session.about(ty, id, session.client.get(ty, id, None))?;
        let mut filters = self.selector.as_ref().map(|selector| selector.query(clusters)).unwrap_or_default();
        if having == Having::Yes {
            filters.push((ty.list.clone().unwrap_or_default(), id.to_owned()));
        }
        let found = session.client.list(clusters, &filters)?.len();
        if found == 0 {
            let having = if having == Having::Yes { format!(" that has {}/{id}", ty.kind) } else { String::new() };
            let none = if self.all { "there is no cluster" } else { "the selector takes no cluster" };
            let message = format!("{none}{having}");
            return Err(
                Failure::failed(message).hint("flux-resourceset-cli cluster list -o wide shows fields and labels")
            );
        }
        session.say(&format!("{} selected", counted(found, "cluster")));
        let patch = Value::Object(patch);
        let edit = match filters.as_slice() {
            [] => Edit::patch_all(clusters, patch),
            filters => Edit::patch_many(clusters, filters, patch),
        };
        let Some(made) = self.consent.carry_out(session, &edit, Asked::Always)? else { return Ok(ExitCode::SUCCESS) };
        let written: WrittenChange = serde_json::from_value(made.body.clone())?;
        let names: Vec<_> = written.documents.iter().map(|write| format!("{}/{}", write.kind, write.id)).collect();
        let sentence = match names.len() {
            0 => format!("nothing to change (revision {})", made.revision),
            count => format!("{} changed as revision {}", counted(count, "cluster"), made.revision),
        };
        session.out.done(&sentence, &names, &made.body)?;
        Ok(ExitCode::SUCCESS)
    }
}
