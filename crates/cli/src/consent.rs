//! Nothing that a command does not name itself is taken from a cluster unseen: such a change is planned, shown and agreed
//! to, and it is made on the fleet for which it was planned. If others were faster, it is planned again, and asked again
//! where the plan has become another one.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::Args;
use client::{ClientError, Edit, Made, ResourceType};
use model::Plan;

use crate::{
    escape::one_line,
    failure::{Failure, Outcome, Result},
    output, plan,
    session::Session,
};

/// Whether to ask, and whether to do it at all.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Let this many inputs go from clusters that are protected from deletion; else a change that takes any is refused
    #[arg(long, value_name = "N")]
    allow_removals: Option<u32>,
}

/// When a person is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The command says itself what goes.
    Never,
    /// If clusters would lose something.
    IfSomethingGoes,
    /// Whenever something changes.
    Always,
    /// Even where nothing would change: the command is a word for all servers, and the plan is that of one.
    Regardless,
}

impl Asked {
    fn about(self, plan: &Plan) -> bool {
        match self {
            Self::Regardless => true,
            Self::Always => !plan.documents.is_empty(),
            Self::Never | Self::IfSomethingGoes => !plan.documents.is_empty() && plan::loses(plan),
        }
    }
}

/// A change, and what is said of it.
pub(crate) struct Deed<'a> {
    pub(crate) edit: Edit,
    pub(crate) asked: Asked,
    /// What is said once it is done, before the revision.
    pub(crate) done: String,
    /// What it was done to.
    pub(crate) names: Vec<String>,
    /// The documents that a person has named, one of which may not be there.
    pub(crate) named: Vec<(&'a ResourceType, &'a str)>,
}

/// How often others may be faster.
const TRIES: u32 = 20;

impl Consent {
    /// Does something and says so or, if it concerns what is not there, says what may have been meant.
    pub(crate) fn perform(self, session: &Session, deed: Deed<'_>) -> Result<ExitCode> {
        let Deed { edit, asked, done, names, named } = deed;
        let made = self.carry_out(session, &edit, asked).map_err(|failure| session.missing(failure, named))?;
        if let Some(made) = made {
            session.out.done(&format!("{done} (revision {})", made.revision), &names, &made.body)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Plans, shows, asks and makes a change, as far as each is wanted. None where nothing was done.
    pub(crate) fn carry_out(self, session: &Session, edit: &Edit, asked: Asked) -> Result<Option<Made>> {
        if asked == Asked::Never && !self.dry_run {
            let _working = session.working("making the change");
            return Ok(Some(session.client.make(&self.allowed(edit.clone()))?));
        }
        self.carry_out_anew(session, || Ok((edit.clone(), asked)))
    }

    /// The same for a change that depends on the fleet: it is thought through anew whenever others were faster.
    pub(crate) fn carry_out_anew(
        self,
        session: &Session,
        mut think: impl FnMut() -> Result<(Edit, Asked)>,
    ) -> Result<Option<Made>> {
        let mut agreed: Option<Plan> = None;
        for _ in 0..TRIES {
            let (edit, asked) = think()?;
            let edit = self.allowed(edit);
            let Some(plan) = if_unchanged(planned(session, &edit))? else { continue };
            if self.dry_run {
                session.out.show(&plan::shown(&plan)?)?;
                return Ok(None);
            }
            if let Some(refused) = &plan.refused {
                // Nobody is asked about what the server refuses.
                output::talk(plan::text(&plan).trim_end());
                let told = format!("{} (409 {})", one_line(&refused.detail), one_line(&refused.code));
                return Err(Failure::new(Outcome::Conflict, told)
                    .hint(format!("look at the plan above, then repeat with --allow-removals {}", refused.removed)));
            }
            if asked.about(&plan) {
                match &agreed {
                    Some(agreed) if plan::is_same(agreed, &plan)? => {}
                    Some(_) => {
                        output::talk("Others have changed the fleet meanwhile, and this is what would be done now:");
                        self.agree(session, &plan)?;
                    }
                    None => self.agree(session, &plan)?,
                }
            }
            let _working = session.working("making the change");
            match if_unchanged(session.client.make(&edit.on(plan.revision, plan.epoch)))? {
                None => agreed = Some(plan),
                made => return Ok(made),
            }
        }
        Err(Failure::failed("others change the fleet faster than this can be planned: nothing was changed"))
    }

    /// The change, with what it may take from protected clusters.
    fn allowed(self, edit: Edit) -> Edit {
        match self.allow_removals {
            Some(count) => edit.allowing_removals(count),
            None => edit,
        }
    }

    /// Shows a plan and asks for a yes.
    fn agree(self, session: &Session, plan: &Plan) -> Result<()> {
        output::talk(plan::text(plan).trim_end());
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::declined("this needs a yes, and there is nobody to ask: nothing was changed")
                .hint("look at the plan above, then repeat with --yes"));
        }
        let mut stderr = anstream::stderr();
        write!(stderr, "Go on with {}? [y/N] ", one_line(&session.name()))?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(Failure::declined("that was no yes: nothing was changed"))
        }
    }
}

fn planned(session: &Session, edit: &Edit) -> Result<Plan, ClientError> {
    let _working = session.working("planning");
    session.client.plan(edit)
}

/// An answer, unless the fleet, or the log, is not any more what the request expects.
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
