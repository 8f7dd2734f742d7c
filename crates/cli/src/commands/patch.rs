//! `patch`: patches a document or, with `--cluster`, the Helm values of a component on one cluster.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use client::{Edit, PatchKind};
use model::yaml;

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::{CliError, Result},
    session::Session,
    values::ValueArgs,
};

#[derive(Clone, Copy, ValueEnum)]
enum PatchTypeArg {
    /// Objects are merged, lists whose items have an id are merged by id, null removes a field
    Strategic,
    /// JSON merge patch (RFC 7396): as strategic, but lists are replaced
    Merge,
    /// JSON patch (RFC 6902): a list of operations
    Json,
}

impl From<PatchTypeArg> for PatchKind {
    fn from(kind: PatchTypeArg) -> Self {
        match kind {
            PatchTypeArg::Strategic => Self::Strategic,
            PatchTypeArg::Merge => Self::Merge,
            PatchTypeArg::Json => Self::Json,
        }
    }
}

#[derive(Args)]
#[allow(clippy::struct_field_names, reason = "the field name is the name of the flag")]
pub(crate) struct PatchArgs {
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
    /// Change the Helm values of the component on this cluster; needs --set, --set-file or --unset
    #[arg(long, value_name = "CLUSTER", add = completion::completer(completion::clusters))]
    cluster: Option<String>,
    #[command(flatten)]
    values: ValueArgs,
    /// Change the document itself with a patch in YAML or JSON
    #[arg(short, long, value_name = "PATCH", conflicts_with = "cluster")]
    patch: Option<String>,
    /// Type of the patch given with --patch
    #[arg(long = "type", value_enum, default_value = "strategic", value_name = "KIND")]
    kind: PatchTypeArg,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl PatchArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        match (&self.cluster, &self.patch) {
            (Some(cluster), _) => {
                let ty = session.definition_type(ty)?;
                if !ty.patchable {
                    return Err(CliError::usage(format!(
                        "a {} has no Helm values to patch on a cluster; omit --cluster",
                        ty.kind
                    )));
                }
                patch_values(session, cluster, &self.id, &self.values, self.consent)
            }
            (None, Some(_)) if !self.values.is_empty() => {
                Err(CliError::usage("--set, --set-file and --unset need --cluster and cannot be combined with --patch"))
            }
            (None, Some(patch)) => self.document(session, ty, patch),
            (None, None) => {
                Err(CliError::usage("nothing to change: use --cluster CLUSTER --set PATH=VALUE, or --patch PATCH")
                    .hint("to change values on many clusters, use flux-resourceset-cli fleet patch"))
            }
        }
    }

    fn document(&self, session: &Session, ty: &str, patch: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let patch =
            yaml::read(patch).map_err(|error| CliError::usage(format!("--patch, line {}: {error}", error.line)))?;
        let edit = Edit::patch(ty, &self.id, self.kind.into(), patch.value);
        let (confirm, name) = (Confirm::OnLoss, ty.name(&self.id));
        let (done, named) = (format!("{name} patched"), vec![(ty, self.id.as_str())]);
        self.consent.perform(session, ChangeRequest { edit, confirm, done, names: vec![name], named })
    }
}

/// Changes the Helm values of a component on a cluster.
pub(crate) fn patch_values(
    session: &Session,
    cluster: &str,
    component: &str,
    values: &ValueArgs,
    consent: ConsentArgs,
) -> Result<ExitCode> {
    let edit = Edit::values(cluster, component, values.patch()?);
    let clusters = session.cluster_type()?;
    let name = clusters.name(cluster);
    let (done, named) = (format!("{component} patched on {name}"), vec![(clusters, cluster)]);
    consent.perform(session, ChangeRequest { edit, confirm: Confirm::Never, done, names: vec![name], named })
}
