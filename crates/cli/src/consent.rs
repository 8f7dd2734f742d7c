//! Nothing that makes Flux delete happens unseen: such a change is planned, shown and agreed to before it is made.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use client::{Edit, Made, Plan};

use crate::{
    failure::{Failure, Result},
    plan,
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
}

impl Consent {
    /// Plans, shows, asks and makes a change, as far as each is wanted. None where nothing was done.
    pub(crate) fn carry_out(self, session: &Session, edit: &Edit, asked: Asked) -> Result<Option<Made>> {
        if self.dry_run {
            session.out.show(&plan::shown(&self.plan(session, edit)?)?)?;
            return Ok(None);
        }
        if asked != Asked::Never {
            let plan = self.plan(session, edit)?;
            let goes = plan.removed() > 0 || plan.documents.iter().any(|document| document.op == "retire");
            if !plan.documents.is_empty() && (asked == Asked::Always || goes) {
                self.agree(session, &plan)?;
            }
        }
        let _working = session.working("making the change");
        Ok(Some(session.client.make(edit)?))
    }

    #[allow(clippy::unused_self, reason = "a plan is part of consenting")]
    fn plan(self, session: &Session, edit: &Edit) -> Result<Plan> {
        let _working = session.working("planning");
        Ok(session.client.plan(edit)?)
    }

    /// Shows a plan and asks for a yes.
    fn agree(self, session: &Session, plan: &Plan) -> Result<()> {
        session.say(plan::text(plan).trim_end());
        if self.yes {
            return Ok(());
        }
        let unasked = Failure::failed("this needs a yes, and there is nobody to ask: nothing was changed");
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(unasked.hint("look at the plan above, then repeat with --yes"));
        }
        let mut stderr = anstream::stderr();
        write!(stderr, "Go on? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(Failure::failed("that was no yes: nothing was changed"))
        }
    }
}
