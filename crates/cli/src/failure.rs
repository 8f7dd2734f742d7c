//! The error of a command: a message, details, a hint with the next step, and the exit code.

use std::{fmt::Write as _, io, process::ExitCode};

use api::ProblemDetails;
use client::ClientError;
use model::FieldError;

use crate::{
    escape::one_line,
    output::{self, BAD, GOOD},
};

/// The kind of an error, which is also the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliErrorKind {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: CliErrorKind,
    message: String,
    details: Vec<String>,
    hint: Option<String>,
    /// The broken rules that the server reported; `apply` adds file and line to them.
    pub(crate) errors: Vec<FieldError>,
    /// How many more broken rules the server counted.
    more_errors: usize,
    silent: bool,
    /// The operator did not confirm the change: repeating it with another document does not help.
    pub(crate) declined: bool,
}

pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

impl CliError {
    pub(crate) fn new(kind: CliErrorKind, message: impl Into<String>) -> Self {
        let (details, errors) = (Vec::new(), Vec::new());
        Self {
            kind,
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
        Self::new(CliErrorKind::Failed, message)
    }

    pub(crate) fn declined(message: impl Into<String>) -> Self {
        Self { declined: true, ..Self::failed(message) }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(CliErrorKind::Usage, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same error with another message, which includes its only broken rule.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, errors: Vec::new(), ..self }
    }

    /// Adds a hint to the hint that is there.
    pub(crate) fn add_hint(self, hint: impl AsRef<str>) -> Self {
        let hint = match &self.hint {
            Some(first) => format!("{first}; {}", hint.as_ref()),
            None => hint.as_ref().to_owned(),
        };
        self.hint(hint)
    }

    pub(crate) fn details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }

    /// Whether it names a next step.
    pub(crate) fn has_hint(&self) -> bool {
        self.hint.is_some()
    }

    pub(crate) fn is(&self, kind: CliErrorKind) -> bool {
        self.kind == kind
    }

    /// The error as text for the terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{BAD}error:{BAD:#} {}\n", one_line(&self.message));
        // Writing to a string cannot fail.
        for detail in &self.details {
            let _ = writeln!(text, "  {}", one_line(detail));
        }
        // A single broken rule is already in the message.
        let in_message = matches!(self.errors.as_slice(), [only] if self.message.contains(&only.message));
        for error in self.errors.iter().filter(|_| !in_message && self.details.is_empty()) {
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

    /// Prints the error to standard error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.silent {
            output::print_message(self.text().trim_end());
        }
        ExitCode::from(self.kind as u8)
    }
}

/// A broken rule with document and field. The index of a write in the batch is left out: the operator did not give it.
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

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) => refused(*problem),
            ClientError::Unreachable { .. } => Self::failed(error.to_string())
                .hint("check that the server runs, and its URL, which comes from --api-url, FLUX_API_URL or a context"),
            ClientError::Address { .. } => Self::usage(error.to_string()).hint("example: http://127.0.0.1:8080"),
            ClientError::Reason => Self::usage(error.to_string()),
            ClientError::Uncertain { .. } => Self::failed(error.to_string()).hint(UNCERTAIN),
            ClientError::Interrupted { .. } | ClientError::Strange { .. } => Self::failed(error.to_string()),
        }
    }
}

const UNCERTAIN: &str =
    "the change may have been made: check flux-resourceset-cli changes before you repeat the command";

fn refused(problem: ProblemDetails) -> CliError {
    let kind = match problem.status {
        404 | 410 => CliErrorKind::NotFound,
        409 | 412 => CliErrorKind::Conflict,
        _ => CliErrorKind::Failed,
    };
    let ProblemDetails { status, code, detail, errors, more_errors, .. } = problem;
    let status_and_code = if code.is_empty() { format!("{status}") } else { format!("{status} {code}") };
    // A single broken rule becomes the message, with the document that breaks it.
    let message = match errors.as_slice() {
        [only] if detail == only.to_string() => broken_rule(only),
        _ => detail,
    };
    let mut error = CliError::new(kind, format!("{message} ({status_and_code})"));
    // With errors, the change would remove inputs from protected clusters; without, it would decommission one.
    let removes_inputs = code == "protected" && !errors.is_empty();
    error.hint = if removes_inputs { Some(ALLOW_REMOVALS) } else { hint(status, &code) }.map(str::to_owned);
    error.errors = errors;
    error.more_errors = more_errors.unwrap_or_default();
    error
}

const ALLOW_REMOVALS: &str =
    "check with --dry-run what would be removed, then repeat with --allow-removals and the number of inputs";

fn hint(status: u16, code: &str) -> Option<&'static str> {
    Some(match (status, code) {
        (401, _) => {
            "set FLUX_API_TOKEN and FLUX_API_WRITE_TOKEN to the tokens of this server, or use a context that has them: \
             flux-resourceset-cli config list"
        }
        (403, _) => "a change needs the write token: set FLUX_API_WRITE_TOKEN, or write_token of the context",
        (_, "exists") => "to change the existing document, use apply, edit or patch",
        (_, "referenced") => {
            "unassign it from these clusters first, or use delete --cascade; --dry-run shows which inputs they lose"
        }
        (_, "protected") => {
            "remove the protection with flux-resourceset-cli patch cluster ID -p '{\"deletion_protection\": false}'"
        }
        (_, "decommissioned") => "to restore a decommissioned cluster, run flux-resourceset-cli cluster restore ID",
        (_, "precondition-failed") => {
            "the document was changed since you read it: read it again, then repeat the change"
        }
        (_, "other-type-changes") => {
            "several servers with different resource type files may share this URL: select one of them with --api-url"
        }
        (_, "unknown-revision" | "pruned") => "to list the revisions that are kept, run flux-resourceset-cli changes",
        (_, "invalid") => "nothing was changed",
        (413, _) => "limits: 1 MiB per document, 32 MiB per change; apply the files in several parts",
        (_, "store-diverged") => {
            "nothing was changed; to compare the served snapshot with the change log, run flux-resourceset-cli store"
        }
        (_, "another-log") => {
            "to restore a backup of this fleet, run flux-resourceset restore --replace FILE \
             with the DATABASE_URL of the servers"
        }
        (503, "store-unavailable") => UNCERTAIN,
        (_, "") => {
            "check that the URL is that of a flux-resourceset server; it comes from --api-url, FLUX_API_URL or \
             a context"
        }
        _ => return None,
    })
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::failed(error.to_string()) }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error.to_string())
    }
}
