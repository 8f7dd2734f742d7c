//! Why a request failed.

use api::ProblemDetails;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address of the server cannot be used.
    #[error("\"{url}\" is not the address of a server: {reason}")]
    Address {
        /// The address.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A reason that cannot be sent in a header.
    #[error("a reason for the audit trail is one line of text")]
    Reason,
    /// The server cannot be reached, or does not answer in time.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable {
        /// The server.
        url: String,
        /// The cause, as the operating system reports it.
        cause: String,
    },
    /// A change was sent, and it is unknown whether it was made.
    #[error("{url} did not answer as it should: {cause}")]
    Uncertain {
        /// The server.
        url: String,
        /// The cause, as the operating system reports it.
        cause: String,
    },
    /// The connection ended before the answer did.
    #[error("the answer of {url} was cut short: {cause}")]
    Interrupted {
        /// The server.
        url: String,
        /// The cause, as the operating system reports it.
        cause: String,
    },
    /// The server refused the request.
    #[error("{}", .0.detail)]
    Refused(Box<ProblemDetails>),
    /// The answer is not what this client expects.
    #[error("{url} answers what this client does not understand: {cause}")]
    Strange {
        /// The server.
        url: String,
        /// What is not understood.
        cause: String,
    },
}

impl ClientError {
    /// The problem details, if the server refused the request.
    #[must_use]
    pub fn problem(&self) -> Option<&ProblemDetails> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// The status, if the server refused the request.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.problem().map(|problem| problem.status)
    }
}
