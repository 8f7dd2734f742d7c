//! Confirmation of changes. If a change would take inputs from clusters that the command does not name, the tool plans
//! it, shows the plan, asks, and makes the change at the revision of the plan (compare-and-swap). If another change
//! came first, the tool plans again, and asks again if the plan is different.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    process::ExitCode,
};

use api::TypeDescription;
use clap::Args;
use client::{ClientError, Edit, Made};
use model::Plan;

use crate::{
    escape::one_line,
    failure::{CliError, CliErrorKind, Result},
    output, plan,
    session::Session,
};

/// The flags that control confirmation.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ConsentArgs {
    /// Make the change without asking for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Show the plan and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[arg(
        long,
        value_name = "N",
        help = "Allow the change to remove up to N inputs from clusters with deletion_protection; without this flag, none"
    )]
    allow_removals: Option<u32>,
}

/// When the operator is asked for confirmation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// The command names itself what it removes.
    Never,
    /// If clusters would lose something.
    OnLoss,
    /// Whenever something changes.
    OnChange,
    /// Even if the plan is empty: the command affects all servers, and the plan is computed by one.
    Always,
}

impl Confirm {
    fn applies_to(self, plan: &Plan) -> bool {
        match self {
            Self::Always => true,
            Self::OnChange => !plan.documents.is_empty(),
            Self::Never | Self::OnLoss => !plan.documents.is_empty() && plan::has_loss(plan),
        }
    }
}

/// A change, and what to report about it.
pub(crate) struct ChangeRequest<'a> {
    pub(crate) edit: Edit,
    pub(crate) confirm: Confirm,
    /// The message after success; the revision is appended.
    pub(crate) done: String,
    /// The changed documents, for `-o name`.
    pub(crate) names: Vec<String>,
    /// The documents that the command line names; for suggestions if one of them does not exist.
    pub(crate) named: Vec<(&'a TypeDescription, &'a str)>,
}

/// How often a change is planned again because another change came first.
const ATTEMPTS: u32 = 20;

impl ConsentArgs {
    /// Makes a change and reports it. If a named document does not exist, the error suggests a similar id.
    pub(crate) fn perform(self, session: &Session, request: ChangeRequest<'_>) -> Result<ExitCode> {
        let ChangeRequest { edit, confirm, done, names, named } = request;
        let change =
            self.confirm_and_make(session, &edit, confirm).map_err(|error| session.suggest_id(error, named))?;
        if let Some(change) = change {
            session.out.report_done(&format!("{done} (revision {})", change.revision), &names, &change.body)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Makes a change; plans it, shows the plan and asks first where `confirm` and the flags require it. None after a
    /// dry run.
    pub(crate) fn confirm_and_make(self, session: &Session, edit: &Edit, confirm: Confirm) -> Result<Option<Made>> {
        if confirm == Confirm::Never && !self.dry_run {
            let _spinner = session.spinner("making the change");
            return Ok(Some(session.client.make(&self.with_allowed_removals(edit.clone()))?));
        }
        self.confirm_and_retry(session, || Ok((edit.clone(), confirm)))
    }

    /// The same for a change that is computed from the fleet: `prepare` runs again whenever another change came first.
    pub(crate) fn confirm_and_retry(
        self,
        session: &Session,
        mut prepare: impl FnMut() -> Result<(Edit, Confirm)>,
    ) -> Result<Option<Made>> {
        let mut confirmed: Option<Plan> = None;
        for _ in 0..ATTEMPTS {
            let (edit, confirm) = prepare()?;
            let edit = self.with_allowed_removals(edit);
            let Some(plan) = if_unchanged(planned(session, &edit))? else { continue };
            if self.dry_run {
                session.out.show(&plan::command_output(&plan)?)?;
                return Ok(None);
            }
            if let Some(refused) = &plan.refused {
                // The server would refuse the change, so there is nothing to confirm.
                output::print_message(plan::text(&plan).trim_end());
                let message = format!("{} (409 {})", one_line(&refused.detail), one_line(&refused.code));
                return Err(CliError::new(CliErrorKind::Conflict, message)
                    .hint(format!("check the plan above, then repeat with --allow-removals {}", refused.removed)));
            }
            if confirm.applies_to(&plan) {
                match &confirmed {
                    Some(confirmed) if plan::is_same(confirmed, &plan)? => {}
                    Some(_) => {
                        output::print_message("The fleet was changed meanwhile. This is the new plan:");
                        self.ask(session, &plan)?;
                    }
                    None => self.ask(session, &plan)?,
                }
            }
            let _spinner = session.spinner("making the change");
            match if_unchanged(session.client.make(&edit.on(plan.revision, plan.epoch)))? {
                None => confirmed = Some(plan),
                change => return Ok(change),
            }
        }
        let message =
            format!("nothing was changed: the fleet was changed by others during each of {ATTEMPTS} attempts");
        Err(CliError::failed(message))
    }

    /// The change, with the number of inputs that it may remove from protected clusters.
    fn with_allowed_removals(self, edit: Edit) -> Edit {
        match self.allow_removals {
            Some(count) => edit.allowing_removals(count),
            None => edit,
        }
    }

    /// Shows a plan and asks for confirmation.
    fn ask(self, session: &Session, plan: &Plan) -> Result<()> {
        output::print_message(plan::text(plan).trim_end());
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(CliError::declined(
                "nothing was changed: this change needs confirmation, and there is no terminal to ask on",
            )
            .hint("check the plan above, then repeat with --yes"));
        }
        let mut stderr = anstream::stderr();
        write!(stderr, "Make this change on {}? [y/N] ", one_line(&session.server_description()))?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(CliError::declined("nothing was changed: the answer was not yes"))
        }
    }
}

fn planned(session: &Session, edit: &Edit) -> Result<Plan, ClientError> {
    let _spinner = session.spinner("planning");
    session.client.plan(edit)
}

/// The answer, or None if the fleet or the change log is no longer at the state that the request expects.
fn if_unchanged<T>(answer: Result<T, ClientError>) -> Result<Option<T>> {
    match answer {
        Err(error)
            if error.problem().is_some_and(|problem| matches!(&*problem.code, "fleet-changed" | "log-changed")) =>
        {
            Ok(None)
        }
        answer => Ok(Some(answer?)),
    }
}
