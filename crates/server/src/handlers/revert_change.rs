//! `POST /changes/{revision}/revert`: undoes a change by a new one, through the same review.

use axum::{extract::State, http::StatusCode, response::Response};
use fleet::{Draft, EditError};
use model::{FieldError, Op, Revision, Write};

use super::{Mutation, Segments, answers::wrote, change::find, past};
use crate::{App, failure::Failure, seeding};

pub(crate) async fn revert_change(
    mutation: Mutation,
    State(app): State<App>,
    Segments(revision): Segments<u64>,
) -> Result<Response, Failure> {
    let revision = Revision(revision);
    let change = find(&app, revision).await?;
    if change.actor == seeding::ACTOR {
        let detail = "the seed is not reverted: that would decommission all its clusters at once";
        return Err(Failure::new(StatusCode::CONFLICT, "seed", detail));
    }
    let mut undo = Vec::with_capacity(change.writes.len());
    for write in &change.writes {
        undo.push((write, past::before(&app, write, revision).await?));
    }
    let outcome = mutation.make(|draft| {
        let later: Vec<_> = change.writes.iter().filter_map(|write| conflict(draft, write, revision)).collect();
        if !later.is_empty() {
            let detail = format!("{} document(s) of revision {revision} were changed since", later.len());
            return Err(Failure::new(StatusCode::CONFLICT, "revert-conflict", detail).with_errors(later));
        }
        put_all_back(draft, &undo)
    });
    wrote(outcome.await?)
}

/// The later change that wrote a document since, if one did.
fn conflict(draft: &Draft<'_>, write: &Write, revision: Revision) -> Option<FieldError> {
    let fleet = draft.fleet();
    let document = fleet.registry().by_kind(write.kind.as_str()).and_then(|ty| fleet.document(ty, &write.id));
    let message = match (document, &write.op) {
        (Some(document), _) if document.revision == revision => return None,
        (None, Op::Remove) => return None,
        (Some(document), _) => format!("revision {} wrote it since", document.revision),
        (None, _) => "it was removed since".to_owned(),
    };
    Some(FieldError::new("", "changed-since", message).of(&write.kind, &write.id))
}

/// Makes all documents what they were before. What others of them still refer to waits until those have let go.
fn put_all_back(draft: &mut Draft<'_>, undo: &[(&Write, Option<Op>)]) -> Result<(), Failure> {
    let mut waiting: Vec<_> = undo.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut refused = None;
        let mut still = Vec::new();
        for entry in waiting {
            match put_back(draft, entry.0, entry.1.as_ref()) {
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
fn put_back(draft: &mut Draft<'_>, write: &Write, before: Option<&Op>) -> Result<(), EditError> {
    let unknown =
        || FieldError::new("", "unknown-kind", "no resource type declares this kind").of(&write.kind, &write.id);
    let ty = draft.fleet().registry().by_kind(write.kind.as_str()).ok_or_else(unknown)?;
    match before {
        Some(op @ Op::Put(_)) => draft.write(ty, &write.id, op.clone()),
        // A tombstone that was purged since is put back.
        Some(op) if write.op == Op::Remove => draft.write(ty, &write.id, op.clone()),
        // It was not there, or decommissioned: what that means, and whether it may be, is what a delete means.
        _ => draft.delete(ty, &write.id, false)?,
    }
    Ok(())
}
