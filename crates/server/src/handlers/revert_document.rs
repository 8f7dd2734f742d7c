//! `POST /{type}/{id}/revert`: makes a document again what it was at a revision.

use api::RevertTarget;
use axum::{extract::State, response::Response};
use model::Revision;

use super::{Mutation, Segments, changed, document_at, past};
use crate::{App, body::Json, failure::Failure};

pub(crate) async fn revert_document(
    mut mutation: Mutation,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    Json(target, _permit): Json<RevertTarget>,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let then = past::document(mutation.reading(), ty, &id, Some(Revision(target.revision))).await?;
    let precondition = mutation.precondition();
    let outcome = mutation.make(|draft| {
        precondition.check(draft.fleet().document(ty, &id), draft.fleet().point().epoch)?;
        draft.write(ty, &id, then.op());
        Ok(())
    });
    changed(outcome.await?, ty, &id)
}
