//! The past: pictures and documents at a revision.

use std::sync::Arc;

use axum::http::StatusCode;
use fleet::Snapshot;
use model::{Document, Id, Op, ResourceType, Revision, State};
use store::{Store, StoreError};

use crate::{App, failure::Failure, query::Params};

/// Takes the revision that a read asks for.
pub(crate) fn revision(params: &mut Params) -> Result<Option<Revision>, Failure> {
    params.revision("revision")
}

/// The log, if it is that of what is served.
pub(crate) fn log(app: &App) -> Result<&Arc<dyn Store>, Failure> {
    app.sound()?;
    app.log.store()
}

/// The picture now, or as it was at a revision.
pub(crate) async fn picture(app: &App, revision: Option<Revision>) -> Result<Arc<Snapshot>, Failure> {
    let now = app.snapshot()?;
    let Some(revision) = known(&now, revision)? else { return Ok(now) };
    let picture = log(app)?.load_at(revision).await.map_err(unreadable)?;
    let load = || Snapshot::load(app.registry.clone(), picture.point, picture.documents);
    tokio::task::block_in_place(load).map(Arc::new).map_err(Failure::internal)
}

/// A document now, or as it was at a revision; a tombstone is no document.
pub(crate) async fn document(
    app: &App,
    ty: &ResourceType,
    id: &Id,
    revision: Option<Revision>,
) -> Result<Document, Failure> {
    let now = app.snapshot()?;
    let document = match known(&now, revision)? {
        None => now.document(ty, id).cloned(),
        Some(revision) => {
            let found = log(app)?.document_at(&ty.kind, id, revision).await.map_err(unreadable)?;
            found.and_then(|(revision, op)| {
                model::Write { kind: ty.kind.clone(), id: id.clone(), op }.document(revision)
            })
        }
    };
    match document {
        Some(document) if document.state == State::Live => Ok(document),
        Some(_) => Err(fleet::EditError::Decommissioned(id.clone()).into()),
        None => Err(fleet::EditError::NotFound { kind: ty.kind.clone(), id: id.clone() }.into()),
    }
}

/// What a document was before a revision.
pub(crate) async fn before(app: &App, write: &model::Write, revision: Revision) -> Result<Option<Op>, Failure> {
    let earlier = Revision(revision.0.saturating_sub(1));
    match log(app)?.document_at(&write.kind, &write.id, earlier).await {
        Ok(found) => Ok(found.map(|(_, op)| op).filter(|op| *op != Op::Remove)),
        Err(error) => Err(unreadable(error)),
    }
}

/// A revision that is not the present one, if there was one.
fn known(now: &Snapshot, revision: Option<Revision>) -> Result<Option<Revision>, Failure> {
    match revision {
        Some(revision) if revision > now.revision() => Err(unknown(revision)),
        other => Ok(other.filter(|revision| *revision < now.revision())),
    }
}

pub(crate) fn unknown(revision: Revision) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "unknown-revision", format!("there is no revision {revision}"))
}

pub(crate) fn unreadable(error: StoreError) -> Failure {
    match error {
        StoreError::Pruned { .. } => Failure::new(StatusCode::GONE, "pruned", error.to_string()),
        other => Failure::store_unavailable().because(other),
    }
}
