//! Why a command failed: a sentence, every detail that is known, and the next step.

use std::{fmt::Write as _, io, process::ExitCode};

use api::ProblemDetails;
use client::ClientError;
use model::FieldError;

use crate::{
    escape::one_line,
    output::{self, BAD, GOOD},
};

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
    outcome: Outcome,
    message: String,
    details: Vec<String>,
    hint: Option<String>,
    /// Every broken rule that the server told, for commands that know where it came from.
    pub(crate) errors: Vec<FieldError>,
    /// How many more there are.
    more_errors: usize,
    silent: bool,
    /// Somebody said no: there is nothing to mend.
    pub(crate) declined: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        let (details, errors) = (Vec::new(), Vec::new());
        Self {
            outcome,
            message: message.into(),
            details,
            hint: None,
            errors,
            more_errors: 0,
            silent: false,
            declined: false,
        }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, message)
    }

    pub(crate) fn declined(message: impl Into<String>) -> Self {
        Self { declined: true, ..Self::failed(message) }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Outcome::Usage, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with another sentence, which tells all that is wrong.
    pub(crate) fn sentence(self, message: String) -> Self {
        Self { message, errors: Vec::new(), ..self }
    }

    /// Says one more thing.
    pub(crate) fn and_hint(self, hint: impl AsRef<str>) -> Self {
        let hint = match &self.hint {
            Some(first) => format!("{first}; {}", hint.as_ref()),
            None => hint.as_ref().to_owned(),
        };
        self.hint(hint)
    }

    pub(crate) fn details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }

    /// Whether it says what to do next.
    pub(crate) fn is_explained(&self) -> bool {
        self.hint.is_some()
    }

    pub(crate) fn is(&self, outcome: Outcome) -> bool {
        self.outcome == outcome
    }

    /// As a text for a person.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{BAD}error:{BAD:#} {}\n", one_line(&self.message));
        // Writing to a string cannot fail.
        for detail in &self.details {
            let _ = writeln!(text, "  {}", one_line(detail));
        }
        // A rule that is broken alone is the sentence itself.
        let alone = matches!(self.errors.as_slice(), [only] if self.message.contains(&only.message));
        for error in self.errors.iter().filter(|_| !alone && self.details.is_empty()) {
            let _ = writeln!(text, "  {}", one_line(&broken_rule(error)));
        }
        if self.more_errors > 0 && self.details.is_empty() {
            let _ = writeln!(text, "  and {} more", self.more_errors);
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

/// A broken rule with its place. Which write of a batch it was is nothing that a person has said.
pub(crate) fn broken_rule(error: &FieldError) -> String {
    let pointer = match error.pointer.strip_prefix("/writes/") {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned(),
        None => error.pointer.clone(),
    };
    let error = FieldError { pointer, ..error.clone() };
    match &error.document {
        Some(document) => format!("{document}: {error}"),
        None if error.pointer.is_empty() => format!("{} ({})", error.message, error.rule),
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
            ClientError::Uncertain { .. } => Self::failed(error.to_string()).hint(UNCERTAIN),
            ClientError::Interrupted { .. } | ClientError::Strange { .. } => Self::failed(error.to_string()),
        }
    }
}

const UNCERTAIN: &str = "the change may have been made: look at flux-resourceset-cli changes before you repeat it";

fn refused(problem: ProblemDetails) -> Failure {
    let outcome = match problem.status {
        404 | 410 => Outcome::NotFound,
        409 | 412 => Outcome::Conflict,
        _ => Outcome::Failed,
    };
    let ProblemDetails { status, code, detail, errors, more_errors, .. } = problem;
    let told = if code.is_empty() { format!("{status}") } else { format!("{status} {code}") };
    // One broken rule is the sentence itself, with the document in which it is broken.
    let sentence = match errors.as_slice() {
        [only] if detail == only.to_string() => broken_rule(only),
        _ => detail,
    };
    let mut failure = Failure::new(outcome, format!("{sentence} ({told})"));
    // What goes from protected clusters is told by cluster; else a protected cluster was to be decommissioned.
    let takes_inputs = code == "protected" && !errors.is_empty();
    failure.hint = if takes_inputs { Some(ALLOW) } else { hint(status, &code) }.map(str::to_owned);
    failure.errors = errors;
    failure.more_errors = more_errors.unwrap_or_default();
    failure
}

const ALLOW: &str = "look at what would go with --dry-run, then repeat with --allow-removals and the number";

fn hint(status: u16, code: &str) -> Option<&'static str> {
    Some(match (status, code) {
        (401, _) => {
            "set FLUX_API_TOKEN (and FLUX_API_WRITE_TOKEN) to the server's tokens, or choose a context that has them: \
             flux-resourceset-cli config list"
        }
        (403, _) => "changes need the write token: set FLUX_API_WRITE_TOKEN, or the context's write_token",
        (_, "exists") => "to change what is there, use apply, edit or patch",
        (_, "referenced") => {
            "take it away from these first, or delete it with delete --cascade; --dry-run shows what they lose"
        }
        (_, "protected") => "flux-resourceset-cli patch cluster ID -p '{\"deletion_protection\": false}'",
        (_, "decommissioned") => "flux-resourceset-cli cluster restore ID brings a decommissioned cluster back",
        (_, "precondition-failed") => "somebody changed it since you read it: look again, then repeat",
        (_, "other-type-changes") => {
            "several servers with different resource type files seem to share this address: ask one of them by --api-url"
        }
        (_, "unknown-revision" | "pruned") => "flux-resourceset-cli changes lists the revisions that are kept",
        (_, "invalid") => "nothing was changed",
        (413, _) => "a document has at most 1 MiB, and one change at most 32 MiB: apply in several parts",
        (_, "store-diverged") => {
            "nothing was changed; flux-resourceset-cli store says what is served and where the log is"
        }
        (_, "another-log") => {
            "flux-resourceset restore --replace FILE puts a log back, with the DATABASE_URL of the servers"
        }
        (503, "store-unavailable") => UNCERTAIN,
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
