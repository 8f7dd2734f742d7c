//! `POST /{type}/{id}/revert`: makes a document say again what it said at a revision.

use axum::{extract::State, response::Response};
use model::Revision;
use serde::Deserialize;

use super::{Mutation, Segments, changed, document_at, past};
use crate::{App, body::Json, failure::Failure};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// The revision to go back to.
    revision: u64,
}

pub(crate) async fn revert_document(
    mut mutation: Mutation,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    Json(target, _permit): Json<Target>,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let then = past::document(&app, ty, &id, Some(Revision(target.revision))).await?;
    let precondition = mutation.precondition();
    let outcome = mutation.make(|draft| {
        precondition.check(draft.fleet().document(ty, &id), draft.fleet().point().epoch)?;
        draft.write(ty, &id, then.op());
        Ok(())
    });
    changed(outcome.await?, ty, &id)
}
