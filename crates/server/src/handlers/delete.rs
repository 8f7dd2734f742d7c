//! `DELETE /{type}/{id}`: removes a definition to which no cluster refers, or decommissions a cluster; with `purge`, removes a
//! decommissioned cluster for good. Answers the document as it was.

use axum::{extract::State, http::StatusCode, response::Response};

use super::{Mutation, Segments, described, document_at};
use crate::{App, failure::Failure};

pub(crate) async fn delete(
    mut mutation: Mutation,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let cascade = !ty.is_cluster() && mutation.params.flag("cascade")?;
    let purge = ty.is_cluster() && mutation.params.flag("purge")?;
    let outcome = if purge {
        // A tombstone is not in force, so it has no ETag that could match.
        let precondition = mutation.precondition();
        let deleted = mutation.make(|draft| {
            draft.purge(&id)?;
            let document = draft.fleet().document(ty, &id);
            precondition.check(document, draft.fleet().point().epoch)?;
            Ok(document.cloned())
        });
        deleted.await?
    } else {
        let deleted = mutation
            .of(ty, &id, |draft| draft.delete(ty, &id, cascade).map(|()| draft.fleet().document(ty, &id).cloned()));
        deleted.await?
    };
    outcome.answer(|done| {
        let document = done.value.ok_or_else(Failure::not_found)?;
        Ok(described(StatusCode::OK, &document, done.fleet.point().epoch))
    })
}
