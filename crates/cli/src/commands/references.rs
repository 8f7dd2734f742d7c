//! `assign` and `unassign`: what clusters have.

use std::process::ExitCode;

use api::{BatchWrite, TypeDescription};
use clap::Args;
use client::Edit;
use model::Map;
use serde_json::json;

use crate::{
    completion,
    consent::{Asked, Consent, Deed},
    documents,
    failure::{Failure, Outcome, Result},
    plan::counted,
    session::Session,
};

/// A patch of a cluster that refers to a definition. Where the cluster has it already, what it overrides stays.
pub(crate) fn reference(ty: &TypeDescription, reference: Map) -> Map {
    Map::from_iter([(ty.list.clone().unwrap_or_default(), json!([reference]))])
}

/// Gives a cluster a definition.
pub(crate) fn assignment(ty: &TypeDescription, id: &str, cluster: &str) -> BatchWrite {
    let body = reference(ty, documents::with_id(id));
    BatchWrite::Patch { kind: model::ResourceType::CLUSTER.to_owned(), id: cluster.to_owned(), body }
}

#[derive(Args)]
pub(crate) struct Assign {
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
    /// The cluster; may stand several times
    #[arg(long, required = true, value_name = "CLUSTER", add = completion::of(completion::clusters))]
    cluster: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

impl Assign {
    pub(crate) fn assign(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        self.run(session, ty, "assigned to", assignment)
    }

    pub(crate) fn unassign(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        self.run(session, ty, "unassigned from", |ty, id, cluster| {
            let (cluster, kind, id) = (cluster.to_owned(), ty.kind.clone(), id.to_owned());
            BatchWrite::Unassign { cluster, kind, id }
        })
    }

    /// Where definition and clusters are there and something is not, it is the reference.
    fn not_assigned(&self, failure: Failure, ty: &TypeDescription) -> Failure {
        if !failure.is(Outcome::NotFound) || failure.is_explained() {
            return failure;
        }
        let clusters: Vec<_> = self.cluster.iter().map(|cluster| format!("cluster/{cluster}")).collect();
        let message = format!("{} does not have {}", clusters.join(" or "), ty.name(&self.id));
        Failure::new(Outcome::NotFound, message)
    }

    fn run(
        &self,
        session: &Session,
        ty: &str,
        verb: &str,
        write: impl Fn(&TypeDescription, &str, &str) -> BatchWrite,
    ) -> Result<ExitCode> {
        let ty = session.definition(ty)?;
        let writes = self.cluster.iter().map(|cluster| write(ty, &self.id, cluster));
        let edit = Edit::batch(writes.collect());
        let name = ty.name(&self.id);
        let cluster = session.clusters()?;
        let clusters = match self.cluster.as_slice() {
            [only] => cluster.name(only),
            several => counted(several.len(), "cluster"),
        };
        let mut named = vec![(ty, self.id.as_str())];
        named.extend(self.cluster.iter().map(|id| (cluster, id.as_str())));
        // The command says itself what goes.
        let (asked, done) = (Asked::Never, format!("{name} {verb} {clusters}"));
        let performed = self.consent.perform(session, Deed { edit, asked, done, names: vec![name], named });
        performed.map_err(|failure| self.not_assigned(failure, ty))
    }
}
