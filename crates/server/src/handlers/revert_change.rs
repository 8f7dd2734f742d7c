//! `POST /changes/{revision}/revert`: undoes a change by a new one, through the same review.

use axum::{extract::State, response::Response};
use fleet::{Draft, EditError};
use futures_util::{StreamExt as _, TryStreamExt as _};
use model::{Change, FieldError, Id, Kind, Op, Revision, TypeRecord, Write};
use store::WriteAndBefore;

use super::{
    Mutation, Segments,
    answers::wrote,
    change::{find, writes},
};
use crate::{
    App,
    access::ReadAccess,
    failure::{ErrorStatus, Failure},
    seeding,
};

pub(crate) async fn revert_change(
    mutation: Mutation,
    State(app): State<App>,
    Segments(revision): Segments<u64>,
) -> Result<Response, Failure> {
    let revision = Revision(revision);
    // Undoing a change of the whole fleet takes all that it wrote.
    let _permit = app.limits.reverts.enter().await?;
    let change = find(mutation.reading(), revision).await?;
    if change.actor == seeding::ACTOR {
        let detail = "the seed is not reverted: that would decommission all its clusters at once";
        return Err(Failure::new(ErrorStatus::CONFLICT, "seed", detail));
    }
    let undo = undo(mutation.reading(), &change).await?;
    if undo.iter().any(|undo| undo.kind.as_str() == TypeRecord::KIND) {
        let detail = format!(
            "revision {revision} recorded resource types, which no revert takes back; put the former files back, look at \
             GET /types/changes, and accept them"
        );
        return Err(Failure::new(ErrorStatus::CONFLICT, "types-not-reverted", detail));
    }
    let outcome = mutation.make(|draft| {
        let later: Vec<_> = undo.iter().filter_map(|undo| conflict(draft, undo, revision)).collect();
        if !later.is_empty() {
            let detail = format!("{} document(s) of revision {revision} were changed since", later.len());
            return Err(Failure::new(ErrorStatus::CONFLICT, "revert-conflict", detail).with_errors(later));
        }
        put_all_back(draft, &undo)?;
        if !undo.is_empty() && !draft.changes_anything() {
            let detail = format!(
                "all that revision {revision} did was to release a DNS name or to tidy a list of former ones, which no revert \
                 takes back; to give a cluster a released name again, set its cluster_dns to it"
            );
            return Err(Failure::new(ErrorStatus::CONFLICT, "names-not-reverted", detail));
        }
        Ok(())
    });
    wrote(outcome.await?)
}

/// A document that the change wrote.
struct Undo {
    kind: Kind,
    id: Id,
    /// Whether the change removed it.
    removed: bool,
    /// What it was before the change.
    before: Option<Op>,
}

/// What the change wrote. The documents after it are not needed, and those before it are packed.
async fn undo(access: &ReadAccess, change: &Change) -> Result<Vec<Undo>, Failure> {
    let packed = |op| match op {
        Op::Put(body) => Op::Put(body.packed()),
        Op::Retire(body) => Op::Retire(body.packed()),
        Op::Remove => Op::Remove,
    };
    let undo = |WriteAndBefore { write: Write { kind, id, op }, before }| Undo {
        kind,
        id,
        removed: op == Op::Remove,
        before: before.map(packed),
    };
    writes(access.clone(), change).map(|write| write.map(undo)).try_collect().await
}

/// The later change that wrote a document since, if one did.
fn conflict(draft: &Draft<'_>, undo: &Undo, revision: Revision) -> Option<FieldError> {
    let fleet = draft.fleet();
    let document = fleet.registry().by_kind(undo.kind.as_str()).and_then(|ty| fleet.document(ty, &undo.id));
    let message = match (document, undo.removed) {
        (Some(document), _) if document.revision == revision => return None,
        (None, true) => return None,
        (Some(document), _) => format!("revision {} wrote it since", document.revision),
        (None, _) => "it was removed since".to_owned(),
    };
    Some(FieldError::new("", "changed-since", message).in_document(&undo.kind, &undo.id))
}

/// Makes all documents what they were before. A document to which others of them still refer waits until these are written.
fn put_all_back(draft: &mut Draft<'_>, undo: &[Undo]) -> Result<(), Failure> {
    let mut waiting: Vec<_> = undo.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut refused = None;
        let mut still = Vec::new();
        for entry in waiting {
            match put_back(draft, entry) {
                Ok(()) => {}
                Err(error @ EditError::Referenced { .. }) => {
                    refused.get_or_insert(error);
                    still.push(entry);
                }
                Err(error) => return Err(error.into()),
            }
        }
        waiting = still;
        match refused {
            Some(error) if waiting.len() == before => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Makes a document what it was before.
fn put_back(draft: &mut Draft<'_>, Undo { kind, id, removed, before }: &Undo) -> Result<(), EditError> {
    let unknown = || FieldError::new("", "unknown-kind", "no resource type declares this kind").in_document(kind, id);
    let ty = draft.fleet().registry().by_kind(kind.as_str()).ok_or_else(unknown)?;
    match before {
        Some(op @ Op::Put(_)) => draft.write(ty, id, op.clone()),
        // A tombstone that was purged since is put back.
        Some(op) if *removed => draft.write(ty, id, op.clone()),
        // It was not there, or decommissioned: what that means, and whether it may be, is what a delete means.
        _ => draft.delete(ty, id, false)?,
    }
    Ok(())
}
