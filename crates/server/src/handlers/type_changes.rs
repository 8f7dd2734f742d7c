//! `GET /types/changes`: where this server's files and the change log differ on how types are served, and what clusters would
//! lose. `POST /types/accept`: the types are served as the files declare them from now on; a change like any other.

use api::{Plan, TypeChange, TypeChanges};
use axum::{extract::State, response::Response};
use fleet::{AllowedRemovals, Draft, Snapshot};
use model::{Digest, FieldError, Origin};
use tokio::task::block_in_place;

use super::{
    Mutation,
    answers::{planned, wrote},
    mutation::{ExpectedPoint, terms},
};
use crate::{
    App,
    access::ReadAccess,
    failure::{ErrorStatus, Failure},
    query::Params,
    request_limits::Permit,
};

pub(crate) async fn changes(access: ReadAccess, State(app): State<App>, params: Params) -> Result<Response, Failure> {
    params.none_left()?;
    let fleet = access.fleet()?;
    let (revision, changes) = (fleet.revision().0, fleet.type_changes());
    let epoch = fleet.point().epoch;
    let digest = TypeChange::digest(&changes).map_err(Failure::internal)?;
    let (plan, permit) = plan(&app, &fleet, 0).await?;
    planned(TypeChanges { revision, epoch, digest, changes, plan }, permit)
}

pub(crate) async fn accept(mut mutation: Mutation, State(app): State<App>) -> Result<Response, Failure> {
    let seen = mutation.params.parsed::<Digest>("expected_changes", "the digest of GET /types/changes")?;
    if mutation.params.flag("dry_run")? {
        let allowed = terms(&mut mutation.params)?.allow_removals;
        let expected = ExpectedPoint::take(&mut mutation.params)?;
        let access = mutation.reading().clone();
        mutation.params.none_left()?;
        let fleet = access.fleet()?;
        expected.check(fleet.point())?;
        seen.map_or(Ok(()), |seen| expect_changes(seen, &fleet))?;
        let (plan, permit) = plan(&app, &fleet, allowed).await?;
        return planned(plan, permit);
    }
    if !mutation.params.has("expected_revision") {
        let rule = "the revision of the accepted plan, revision of GET /types/changes, is needed";
        return Err(Failure::invalid_query(FieldError::new("/expected_revision", "required", rule)));
    }
    let Some(seen) = seen else {
        let rule = "the digest of the accepted changes, digest of GET /types/changes, is needed";
        return Err(Failure::invalid_query(FieldError::new("/expected_changes", "required", rule)));
    };
    let accepted = mutation.make(|draft| {
        expect_changes(seen, draft.fleet())?;
        Ok(draft.accept_types()?)
    });
    wrote(accepted.await?)
}

/// Behind one address there may be servers with different files. What an operator saw on one is not accepted on another.
fn expect_changes(seen: Digest, fleet: &Snapshot) -> Result<(), Failure> {
    if TypeChange::digest(&fleet.type_changes()).map_err(Failure::internal)? == seen {
        return Ok(());
    }
    let detail = "this server's files and the change log differ in another way than the request expects: another server, \
                  with other files, may have answered GET /types/changes";
    Err(Failure::new(ErrorStatus::PRECONDITION_FAILED, "other-type-changes", detail))
}

/// What accepting this server's files would do to clusters. Every cluster is answered twice for it, so it is computed where
/// polls do not wait for it.
async fn plan(app: &App, fleet: &Snapshot, allowed: usize) -> Result<(Plan, Option<Permit>), Failure> {
    if fleet.type_changes().is_empty() {
        // There is nothing to answer clusters twice for.
        return Ok((Plan::new(fleet.point(), Vec::new()), None));
    }
    let plan = || {
        let mut draft = Draft::on(fleet);
        draft.accept_types()?;
        let origin = Origin { at: app.clock.now(), actor: String::new(), reason: None, request_id: None };
        let (change, next) = draft.into_change(origin, AllowedRemovals::Planned)?;
        fleet.types_plan(&next, &change.writes, allowed).map_err(Failure::internal)
    };
    let permit = app.limits.plans.enter().await?;
    Ok((block_in_place(plan)?, Some(permit)))
}
