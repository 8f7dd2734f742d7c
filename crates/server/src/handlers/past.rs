//! The past: documents and what follows from them, at a revision.
//!
//! All of it is read through one limit, which leaves the store to those who write and follow. One document, and the inputs of one
//! cluster, never read the documents of other clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleet::Snapshot;
use model::{Document, Explanation, Id, ResourceType, Revision, State};
use store::{LogBounds, Store, StoreError, StoredFleet};
use tokio::time::timeout;

use super::change;
use crate::{
    access::ReadAccess,
    failure::{ErrorStatus, Failure},
    query::Params,
};

/// How long an explanation waits for the change log.
const EXPLANATION_PATIENCE: Duration = Duration::from_secs(2);

/// Takes the revision that a read asks for.
pub(crate) fn revision(params: &mut Params) -> Result<Option<Revision>, Failure> {
    params.revision("revision")
}

/// The change log, if it continues the served snapshot.
pub(crate) fn log(access: &ReadAccess) -> Result<&Arc<dyn Store>, Failure> {
    access.app().ensure_healthy()?;
    access.store()
}

/// The two ends of the change log.
pub(crate) async fn ends(access: &ReadAccess) -> Result<LogBounds, Failure> {
    let store = log(access)?;
    let _permit = access.app().limits.past.enter().await?;
    store.bounds().await.map_err(unreadable)
}

/// The documents of a type as they were at a revision.
pub(crate) async fn documents(
    access: &ReadAccess,
    ty: &ResourceType,
    revision: Revision,
) -> Result<Arc<StoredFleet>, Failure> {
    let (app, now) = (access.app(), access.fleet()?);
    let store = log(access)?;
    let found = app.past.of_type(&**store, (now.point(), app.clock.uptime()), revision, ty).await;
    found.map_err(unreadable)
}

/// The definitions as they were at a revision, with one cluster.
pub(crate) async fn fleet_of(
    access: &ReadAccess,
    clusters: &ResourceType,
    id: &Id,
    revision: Revision,
) -> Result<Arc<Snapshot>, Failure> {
    let (app, now) = (access.app(), access.fleet()?);
    let store = log(access)?;
    let _permit = app.limits.past.enter().await?;
    let cluster = written(&**store, clusters, id, revision).await?;
    let found = app.past.definitions(&**store, (now.point(), app.clock.uptime()), revision).await;
    let definitions = found.map_err(unreadable)?;
    let load = || {
        let documents = definitions.documents.iter().cloned().chain(cluster);
        Snapshot::load(app.registry.clone(), definitions.point, documents)
    };
    app.limits.lists.compute(load).await?.map(Arc::new).map_err(Failure::internal)
}

/// A document now, or as it was at a revision; a tombstone is no document.
pub(crate) async fn document(
    access: &ReadAccess,
    ty: &ResourceType,
    id: &Id,
    revision: Option<Revision>,
) -> Result<Document, Failure> {
    let now = access.fleet()?;
    let document = match known(&now, revision)? {
        None => now.document(ty, id).cloned(),
        Some(revision) => {
            let store = log(access)?;
            let _permit = access.app().limits.past.enter().await?;
            written(&**store, ty, id, revision).await?
        }
    };
    match document {
        Some(document) if document.state == State::Live => Ok(document),
        Some(_) => Err(fleet::EditError::Decommissioned(id.clone()).into()),
        None => Err(fleet::EditError::NotFound { kind: ty.kind.clone(), id: id.clone() }.into()),
    }
}

/// What the last write to a document at or before a revision left behind.
async fn written(
    store: &dyn Store,
    ty: &ResourceType,
    id: &Id,
    revision: Revision,
) -> Result<Option<Document>, Failure> {
    let found = store.document_at(&ty.kind, id, revision).await.map_err(unreadable)?;
    Ok(found.and_then(|(revision, op)| model::Write { kind: ty.kind.clone(), id: id.clone(), op }.document(revision)))
}

/// Adds to an explanation who wrote its documents last, when and why: one read for each change, of which there are few. What cannot
/// be read is left out, because the values are known without it.
pub(crate) async fn add_changes(access: &ReadAccess, explanation: &mut Explanation) {
    let revisions: BTreeSet<_> = explanation.documents_mut().map(|document| document.revision).collect();
    let mut changes = BTreeMap::new();
    let read = async {
        for revision in revisions {
            if let Ok(change) = change::find(access, revision).await {
                changes.insert(revision, change);
            }
        }
    };
    // Too late is the same as unreadable: what was read until then is added.
    let _ = timeout(EXPLANATION_PATIENCE, read).await;
    for document in explanation.documents_mut() {
        if let Some(change) = changes.get(&document.revision) {
            document.add_change(change);
        }
    }
}

/// A revision that is not the present one, if there was one.
pub(crate) fn known(now: &Snapshot, revision: Option<Revision>) -> Result<Option<Revision>, Failure> {
    match revision {
        Some(revision) if revision > now.revision() => Err(unknown(revision)),
        // Before the first change there was no fleet, which is not the same as an empty one.
        Some(Revision::ZERO) if now.revision() > Revision::ZERO => Err(unknown(Revision::ZERO)),
        other => Ok(other.filter(|revision| *revision < now.revision())),
    }
}

pub(crate) fn unknown(revision: Revision) -> Failure {
    Failure::new(ErrorStatus::NOT_FOUND, "unknown-revision", format!("there is no revision {revision}"))
}

pub(crate) fn unreadable(error: StoreError) -> Failure {
    match error {
        StoreError::Pruned { .. } => Failure::new(ErrorStatus::GONE, "pruned", error.to_string()),
        other => Failure::store_unavailable().because(other),
    }
}
