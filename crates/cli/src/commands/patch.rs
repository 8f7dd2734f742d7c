//! `patch`: a document as a whole or, with `--cluster`, the values of a component on one cluster.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use client::{Edit, PatchKind};
use model::yaml;

use crate::{
    completion,
    consent::{Asked, Consent, Deed},
    failure::{Failure, Result},
    session::Session,
    settings::Values,
};

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Objects are merged, lists of things with an id are merged by it, null removes
    Strategic,
    /// RFC 7396: as strategic, but lists are replaced
    Merge,
    /// RFC 6902: a list of operations
    Json,
}

impl From<Kind> for PatchKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Strategic => Self::Strategic,
            Kind::Merge => Self::Merge,
            Kind::Json => Self::Json,
        }
    }
}

#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "it is the name of the flag")]
pub(crate) struct Patch {
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
    /// Change the values of the component on this cluster, with --set and the like
    #[arg(long, value_name = "CLUSTER", add = completion::of(completion::clusters))]
    cluster: Option<String>,
    #[command(flatten)]
    values: Values,
    /// Change the document itself: a patch in YAML or JSON
    #[arg(short, long, value_name = "PATCH", conflicts_with = "cluster")]
    patch: Option<String>,
    /// How the patch of the document is meant
    #[arg(long = "type", value_enum, default_value = "strategic", value_name = "KIND")]
    kind: Kind,
    #[command(flatten)]
    consent: Consent,
}

impl Patch {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        match (&self.cluster, &self.patch) {
            (Some(cluster), _) => {
                let ty = session.definition(ty)?;
                if !ty.patchable {
                    return Err(Failure::usage(format!("clusters do not patch a {}; leave --cluster out", ty.kind)));
                }
                values(session, cluster, &self.id, &self.values, self.consent)
            }
            (None, Some(_)) if !self.values.is_empty() => {
                Err(Failure::usage("--set and its kin change values on a cluster, and --patch the document: use one"))
            }
            (None, Some(patch)) => self.document(session, ty, patch),
            (None, None) => {
                Err(Failure::usage("say what to change: --cluster CLUSTER --set PATH=VALUE, or --patch PATCH")
                    .hint("flux-resourceset-cli fleet patch changes the values on many clusters"))
            }
        }
    }

    fn document(&self, session: &Session, ty: &str, patch: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        let patch =
            yaml::read(patch).map_err(|error| Failure::usage(format!("--patch, line {}: {error}", error.line)))?;
        let edit = Edit::patch(ty, &self.id, self.kind.into(), patch.value);
        let (asked, name) = (Asked::IfSomethingGoes, ty.name(&self.id));
        let (done, named) = (format!("{name} patched"), vec![(ty, self.id.as_str())]);
        self.consent.perform(session, Deed { edit, asked, done, names: vec![name], named })
    }
}

/// Changes the values of a component on a cluster.
pub(crate) fn values(
    session: &Session,
    cluster: &str,
    component: &str,
    values: &Values,
    consent: Consent,
) -> Result<ExitCode> {
    let edit = Edit::values(cluster, component, values.patch()?);
    let clusters = session.clusters()?;
    let name = clusters.name(cluster);
    let (done, named) = (format!("{component} patched on {name}"), vec![(clusters, cluster)]);
    consent.perform(session, Deed { edit, asked: Asked::Never, done, names: vec![name], named })
}
