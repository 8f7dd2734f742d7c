//! What all changes have in common: who makes them, under which condition, and whether they are only planned.

use axum::{extract::FromRequestParts, http::request::Parts};
use fleet::{Draft, EditError};
use model::{Epoch, Id, MAX_SAFE_INTEGER, Point, ResourceType, Revision};

use crate::{
    App,
    access::{ReadAccess, WriteAccess},
    failure::{ErrorStatus, Failure},
    precondition::Precondition,
    query::Params,
    writing::{About, Outcome, Terms, write},
};

/// The parameters that every change takes.
pub(crate) const PARAMETERS: [&str; 4] = ["allow_removals", "dry_run", "expected_epoch", "expected_revision"];

/// At what revision, and in which epoch, a request expects the fleet.
#[derive(Clone, Copy)]
pub(super) struct ExpectedPoint {
    revision: Option<Revision>,
    epoch: Option<Epoch>,
}

impl ExpectedPoint {
    pub(super) fn take(params: &mut Params) -> Result<Self, Failure> {
        let epoch = params.bounded("expected_epoch", MAX_SAFE_INTEGER)?.map(Epoch);
        Ok(Self { revision: params.revision("expected_revision")?, epoch })
    }

    /// A change that was planned on one snapshot of the fleet is not made on another: an operator may have agreed to the plan. A
    /// revision without an epoch is one of the first: in a later epoch the same number stands for other changes.
    pub(super) fn check(self, now: &Point) -> Result<(), Failure> {
        let refuse = |detail: String| Err(Failure::new(ErrorStatus::PRECONDITION_FAILED, "fleet-changed", detail));
        let epoch = self.epoch.or(self.revision.and(Some(Epoch::default())));
        if let Some(epoch) = epoch.filter(|epoch| *epoch != now.epoch) {
            return refuse(format!(
                "the change log is in epoch {} and not in {epoch}, as the request expects: plan the change again, and send the \
                 plan's epoch as expected_epoch",
                now.epoch
            ));
        }
        match self.revision.filter(|expected| *expected != now.revision) {
            Some(expected) => {
                let now = now.revision;
                refuse(format!("the fleet is at revision {now} and not at {expected}, as the request expects"))
            }
            None => Ok(()),
        }
    }
}

/// Takes how the change is asked for.
pub(super) fn terms(params: &mut Params) -> Result<Terms, Failure> {
    let allowed = params.count("allow_removals")?.unwrap_or(0);
    let allow_removals = usize::try_from(allowed).map_err(Failure::internal)?;
    Ok(Terms { dry_run: params.flag("dry_run")?, allow_removals })
}

/// A request to change something.
pub(crate) struct Mutation {
    app: App,
    access: WriteAccess,
    precondition: Precondition,
    pub(crate) params: Params,
}

impl FromRequestParts<App> for Mutation {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        Ok(Self {
            app: app.clone(),
            access: WriteAccess::from_request_parts(parts, app).await?,
            precondition: Precondition::from_request_parts(parts, app).await?,
            params: Params::from_request_parts(parts, app).await?,
        })
    }
}

impl Mutation {
    /// The right to read, which the right to write includes.
    pub(crate) fn reading(&self) -> &ReadAccess {
        self.access.reading()
    }

    /// Takes the precondition, to check it where there is a document.
    pub(crate) fn precondition(&mut self) -> Precondition {
        std::mem::take(&mut self.precondition)
    }

    /// Makes a change, once the handler has taken its own parameters and the precondition: any other parameter is refused.
    pub(crate) async fn make<T>(
        self,
        edit: impl Fn(&mut Draft<'_>) -> Result<T, Failure>,
    ) -> Result<Outcome<T>, Failure> {
        self.make_about(About::Many, edit).await
    }

    async fn make_about<T>(
        mut self,
        about: About,
        edit: impl Fn(&mut Draft<'_>) -> Result<T, Failure>,
    ) -> Result<Outcome<T>, Failure> {
        self.precondition.none_given()?;
        let terms = terms(&mut self.params)?;
        let expected = ExpectedPoint::take(&mut self.params)?;
        self.params.none_left()?;
        write(&self.app, &self.access, about, terms, |draft| {
            expected.check(draft.fleet().point())?;
            edit(draft)
        })
        .await
    }

    /// Makes a change to a document that is in force and what the request expects it to be.
    pub(crate) async fn of<T>(
        mut self,
        ty: &ResourceType,
        id: &Id,
        edit: impl Fn(&mut Draft<'_>) -> Result<T, EditError>,
    ) -> Result<Outcome<T>, Failure> {
        let precondition = self.precondition();
        let about = if ty.is_cluster() { About::OneCluster } else { About::Many };
        self.make_about(about, |draft| {
            draft.in_force(ty, id)?;
            precondition.check(draft.fleet().document(ty, id), draft.fleet().point().epoch)?;
            Ok(edit(draft)?)
        })
        .await
    }
}
