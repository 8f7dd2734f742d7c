//! `assign` and `unassign`: the references of clusters to definitions.

use std::process::ExitCode;

use api::{BatchWrite, TypeDescription};
use clap::Args;
use client::Edit;
use model::Map;
use serde_json::json;

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    documents,
    failure::{CliError, CliErrorKind, Result},
    plan::counted,
    session::Session,
};

/// A patch of a cluster that adds a reference to a definition. If the cluster has the reference, its overrides are
/// kept.
pub(crate) fn reference_patch(ty: &TypeDescription, reference: Map) -> Map {
    Map::from_iter([(ty.list.clone().unwrap_or_default(), json!([reference]))])
}

/// The write that assigns a definition to a cluster.
pub(crate) fn assignment(ty: &TypeDescription, id: &str, cluster: &str) -> BatchWrite {
    let body = reference_patch(ty, documents::with_id(id));
    BatchWrite::Patch { kind: model::ResourceType::CLUSTER.to_owned(), id: cluster.to_owned(), body }
}

#[derive(Args)]
pub(crate) struct AssignArgs {
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
    /// Cluster id; repeat the flag for several clusters
    #[arg(long, required = true, value_name = "CLUSTER", add = completion::completer(completion::clusters))]
    cluster: Vec<String>,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl AssignArgs {
    pub(crate) fn assign(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        self.run(session, ty, "assigned to", assignment)
    }

    pub(crate) fn unassign(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        self.run(session, ty, "unassigned from", |ty, id, cluster| {
            let (cluster, kind, id) = (cluster.to_owned(), ty.kind.clone(), id.to_owned());
            BatchWrite::Unassign { cluster, kind, id }
        })
    }

    /// A "not found" although the definition and the clusters exist is about the reference.
    fn not_assigned(&self, error: CliError, ty: &TypeDescription) -> CliError {
        if !error.is(CliErrorKind::NotFound) || error.has_hint() {
            return error;
        }
        let clusters: Vec<_> = self.cluster.iter().map(|cluster| format!("cluster/{cluster}")).collect();
        let message = format!("{} is not assigned to {}", ty.name(&self.id), clusters.join(" or "));
        CliError::new(CliErrorKind::NotFound, message)
    }

    fn run(
        &self,
        session: &Session,
        ty: &str,
        verb: &str,
        write: impl Fn(&TypeDescription, &str, &str) -> BatchWrite,
    ) -> Result<ExitCode> {
        let ty = session.definition_type(ty)?;
        let writes = self.cluster.iter().map(|cluster| write(ty, &self.id, cluster));
        let edit = Edit::batch(writes.collect());
        let name = ty.name(&self.id);
        let cluster = session.cluster_type()?;
        let clusters = match self.cluster.as_slice() {
            [only] => cluster.name(only),
            several => counted(several.len(), "cluster"),
        };
        let mut named = vec![(ty, self.id.as_str())];
        named.extend(self.cluster.iter().map(|id| (cluster, id.as_str())));
        // The command names itself what it removes.
        let (confirm, done) = (Confirm::Never, format!("{name} {verb} {clusters}"));
        let performed = self.consent.perform(session, ChangeRequest { edit, confirm, done, names: vec![name], named });
        performed.map_err(|error| self.not_assigned(error, ty))
    }
}
