//! `PATCH /{type}/{id}`: changes a document, by a patch of one of three kinds. Concurrent patches never lose one another.

use axum::{extract::State, response::Response};

use super::{Mutation, Segments, changed, document_at};
use crate::{App, body::PatchBody, failure::Failure};

pub(crate) async fn patch(
    mutation: Mutation,
    State(app): State<App>,
    Segments(segments): Segments<(String, String)>,
    PatchBody { patch, is_plain, permit: _permit }: PatchBody,
) -> Result<Response, Failure> {
    let (ty, id) = document_at(&app, &segments)?;
    let patched = mutation.of(ty, &id, |draft| {
        draft.patch(ty, &id, &patch)?;
        if is_plain { draft.refuse_shorter_lists(ty, std::slice::from_ref(&id), &patch) } else { Ok(()) }
    });
    changed(patched.await?, ty, &id)
}
