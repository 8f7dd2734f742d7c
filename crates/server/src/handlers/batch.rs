//! `POST /batch`: many writes, one change, all or none.

use api::{Batch, BatchWrite};
use axum::{extract::State, response::Response};
use fleet::{Draft, EditError};
use model::{
    Excerpt, FieldError, Id, Patch, Registry, ResourceType, Value,
    limits::{BATCH_WRITES, ERRORS},
};

use super::{Mutation, answers::wrote};
use crate::{App, body::Json, failure::Failure};

pub(crate) async fn batch(
    mutation: Mutation,
    State(app): State<App>,
    Json(batch, _permit): Json<Batch>,
) -> Result<Response, Failure> {
    if batch.writes.len() > BATCH_WRITES {
        let message = format!("a batch has at most {BATCH_WRITES} writes, and this has {}", batch.writes.len());
        return Err(Failure::invalid(vec![FieldError::new("/writes", "batch-writes", message)]));
    }
    wrote(mutation.make(|draft| edit_all(draft, &app.registry, &batch.writes)).await?)
}

/// Makes all writes, or answers why some of them cannot be made.
fn edit_all(draft: &mut Draft<'_>, registry: &Registry, writes: &[BatchWrite]) -> Result<(), Failure> {
    let (mut failures, mut listed) = (Vec::new(), 0);
    for (at, write) in writes.iter().enumerate() {
        if let Err(error) = edit(draft, registry, write) {
            let failure = Failure::from(error);
            listed += failure.error_count();
            failures.push((at, failure));
        }
        // An answer lists no more, and other requests wait.
        if listed >= ERRORS {
            break;
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(joined(failures, listed >= ERRORS)) }
}

/// One failure is answered as it is; several are answered together, each with its position in the batch.
fn joined(mut failures: Vec<(usize, Failure)>, is_cut: bool) -> Failure {
    let count = failures.len();
    if count == 1 {
        let (at, failure) = failures.remove(0);
        let errors = at_position(at, failure.clone()).collect();
        return failure.with_errors(errors);
    }
    let (_, first) = &failures[0];
    let same = failures.iter().all(|(_, failure)| failure.code() == first.code());
    let (status, code) = (first.status(), first.code());
    let errors = failures.into_iter().flat_map(|(at, failure)| at_position(at, failure)).collect();
    if !same {
        return Failure::invalid(errors);
    }
    let more = if is_cut { "at least " } else { "" };
    Failure::new(status, code, format!("{more}{count} writes cannot be made")).with_errors(errors)
}

fn at_position(at: usize, failure: Failure) -> impl Iterator<Item = FieldError> {
    let locate = move |error: FieldError| FieldError { pointer: format!("/writes/{at}{}", error.pointer), ..error };
    failure.into_errors().into_iter().map(locate)
}

fn edit(draft: &mut Draft<'_>, registry: &Registry, write: &BatchWrite) -> Result<(), EditError> {
    match write {
        BatchWrite::Create { kind, body } => draft.create(type_of(registry, kind)?, body.clone()).map(drop),
        BatchWrite::Put { kind, id, body } => {
            let (ty, id) = (type_of(registry, kind)?, parse(id)?);
            if ["id", "_id"].iter().filter_map(|name| body.get(*name)).any(|other| other != id.as_str()) {
                return Err(FieldError::new("/id", "id", "the body's id is not that of the write").into());
            }
            match draft.replace(ty, &id, body.clone()) {
                Err(EditError::NotFound { .. } | EditError::Decommissioned(_)) => {
                    let mut body = body.clone();
                    body.entry("id").or_insert_with(|| Value::String(id.to_string()));
                    draft.create(ty, body).map(drop)
                }
                done => done,
            }
        }
        BatchWrite::Patch { kind, id, body } => {
            draft.patch(type_of(registry, kind)?, &parse(id)?, &Patch::Strategic(Value::Object(body.clone())))
        }
        BatchWrite::Delete { kind, id, cascade } => draft.delete(type_of(registry, kind)?, &parse(id)?, *cascade),
        BatchWrite::Restore { id } => draft.restore(&parse(id)?),
        BatchWrite::Purge { id } => draft.purge(&parse(id)?),
        BatchWrite::Assign { cluster, kind, id, body } => {
            draft.assign(&parse(cluster)?, definition_of(registry, kind)?, &parse(id)?, body.clone())
        }
        BatchWrite::Unassign { cluster, kind, id } => {
            draft.unassign(&parse(cluster)?, definition_of(registry, kind)?, &parse(id)?)
        }
    }
}

fn type_of<'a>(registry: &'a Registry, name: &str) -> Result<&'a ResourceType, EditError> {
    let unknown = || FieldError::new("/kind", "kind", format!("there is no resource type \"{}\"", Excerpt(name)));
    Ok(registry.by_name(name).ok_or_else(unknown)?)
}

fn definition_of<'a>(registry: &'a Registry, name: &str) -> Result<&'a ResourceType, EditError> {
    let ty = type_of(registry, name)?;
    if ty.is_cluster() {
        return Err(FieldError::new("/kind", "kind", "a cluster is not assigned to a cluster").into());
    }
    Ok(ty)
}

fn parse(id: &str) -> Result<Id, EditError> {
    Ok(Id::parse(id).map_err(|error| FieldError::new("/id", "id", format!("\"{}\": {error}", Excerpt(id))))?)
}
