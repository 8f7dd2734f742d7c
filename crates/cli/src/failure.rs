//! Why a command failed: a sentence, every detail that is known, and the next step.

use std::{fmt::Write as _, io, process::ExitCode};

use client::{ClientError, Problem};
use model::FieldError;

use crate::output::{self, BAD, GOOD};

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
}

/// A command that did not do what it was told.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    message: String,
    details: Vec<String>,
    hint: Option<String>,
    /// Every broken rule that the server told, for commands that know where it came from.
    pub(crate) errors: Vec<FieldError>,
    silent: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        let (details, errors) = (Vec::new(), Vec::new());
        Self { outcome, message: message.into(), details, hint: None, errors, silent: false }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Outcome::Usage, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }

    pub(crate) fn is(&self, outcome: Outcome) -> bool {
        self.outcome == outcome
    }

    /// As a text for a person.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{BAD}error:{BAD:#} {}\n", self.message);
        // Writing to a string cannot fail.
        for detail in &self.details {
            let _ = writeln!(text, "  {detail}");
        }
        let rules = self.errors.iter().filter(|error| !self.message.contains(&error.message)).map(broken_rule);
        for rule in rules.filter(|_| self.details.is_empty()) {
            let _ = writeln!(text, "  {rule}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "{GOOD}hint:{GOOD:#} {hint}");
        }
        text
    }

    /// Tells the person, and says how the process ends.
    pub(crate) fn tell(&self) -> ExitCode {
        if !self.silent {
            output::talk(self.text().trim_end());
        }
        ExitCode::from(self.outcome as u8)
    }
}

/// A broken rule with its place.
pub(crate) fn broken_rule(error: &FieldError) -> String {
    match &error.document {
        Some(document) => format!("{document}: {error}"),
        None => error.to_string(),
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) => refused(*problem),
            ClientError::Unreachable { .. } => Self::failed(error.to_string()).hint(
                "is the server running, and is this its address? FLUX_API_URL, --api-url or a context says which is asked",
            ),
            ClientError::Address { .. } => Self::usage(error.to_string()).hint("an address is like http://127.0.0.1:8080"),
            ClientError::Reason => Self::usage(error.to_string()),
            ClientError::Interrupted { .. } | ClientError::Strange { .. } => Self::failed(error.to_string()),
        }
    }
}

fn refused(problem: Problem) -> Failure {
    let outcome = match problem.status {
        404 | 410 => Outcome::NotFound,
        409 | 412 => Outcome::Conflict,
        _ => Outcome::Failed,
    };
    let Problem { status, code, detail, errors } = problem;
    let told = if code.is_empty() { format!("{status}") } else { format!("{status} {code}") };
    // One broken rule is the sentence itself, with the document in which it is broken.
    let sentence = match errors.as_slice() {
        [only] if detail == only.to_string() => broken_rule(only),
        _ => detail,
    };
    let mut failure = Failure::new(outcome, format!("{sentence} ({told})"));
    failure.hint = hint(status, &code).map(str::to_owned);
    failure.errors = errors;
    failure
}

fn hint(status: u16, code: &str) -> Option<&'static str> {
    Some(match (status, code) {
        (401, _) => {
            "set FLUX_API_TOKEN (and FLUX_API_WRITE_TOKEN) to the server's tokens, or choose a context that has them: \
             flux-resourceset-cli config list"
        }
        (403, _) => "changes need the write token: set FLUX_API_WRITE_TOKEN, or the context's write_token",
        (_, "exists") => "to change what is there, use apply, edit or patch",
        (_, "referenced") => {
            "delete with --cascade to take it away from these clusters too; --dry-run shows what they lose"
        }
        (_, "protected") => "flux-resourceset-cli patch cluster ID -p '{\"deletion_protection\": false}'",
        (_, "decommissioned") => "flux-resourceset-cli cluster restore ID brings a decommissioned cluster back",
        (_, "precondition-failed") => "somebody changed it since you read it: look again, then repeat",
        (_, "unknown-revision" | "pruned") => "flux-resourceset-cli changes lists the revisions that are kept",
        (_, "invalid") => "nothing was changed",
        (413, _) => "one change has at most 32 MiB: apply in several parts",
        (503, "store-unavailable") => {
            "the change may have been made: look at flux-resourceset-cli changes before you repeat it"
        }
        (_, "") => {
            "is this the address of a flux-resourceset server? FLUX_API_URL, --api-url or a context says which is asked"
        }
        _ => return None,
    })
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::failed(error.to_string()) }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error.to_string())
    }
}
