//! `PATCH /{type}?<filters>`: one strategic merge patch over every match, as one change. A patch without filters needs `all=true`.

use axum::{extract::State, response::Response};
use model::{FieldError, Id};

use super::{Mutation, Segments, answers::wrote, mutation::PARAMETERS, selection::Selection, type_at};
use crate::{
    App,
    body::{PatchBody, StrategicPatch},
    failure::Failure,
};

pub(crate) async fn bulk_patch(
    mut mutation: Mutation,
    State(app): State<App>,
    Segments(plural): Segments<String>,
    StrategicPatch(PatchBody { patch, is_plain, permit: _permit }): StrategicPatch,
) -> Result<Response, Failure> {
    let ty = type_at(&app, &plural)?;
    let all = mutation.params.flag("all")?;
    let selection = Selection::take(&mut mutation.params, ty, &PARAMETERS)?;
    if selection.is_empty() && !all {
        let message = format!("a patch of all {plural} must say so: add all=true, or a filter");
        return Err(Failure::invalid(vec![FieldError::new("/all", "unfiltered", message)]));
    }
    let edited = mutation.make(|draft| {
        let documents = selection.documents(draft.fleet().documents(ty))?;
        let ids: Vec<Id> = documents.into_iter().map(|document| document.id.clone()).collect();
        draft.patch_all(ty, ids.clone(), &patch)?;
        if is_plain {
            draft.refuse_shorter_lists(ty, &ids, &patch)?;
        }
        Ok(())
    });
    wrote(edited.await?)
}
