//! Configuration: every setting is an environment variable and a flag, typed, documented, and unable to print a
//! secret. A bad one is a sentence that names it, and never a panic.

use std::{ffi::OsString, fmt, net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use manifests::ApiUrl;
use store::SqliteDsn;

use crate::access::{Token, Tokens};

/// Where seeds are looked for if nothing else is said.
const DEFAULT_SEED: &str = "data/seed.json";

/// Serves every cluster of a fleet the inputs of its Flux ResourceSets.
#[derive(Debug, Parser)]
#[allow(clippy::doc_markdown, reason = "these texts are the help")]
#[command(name = "flux-resourceset", version, max_term_width = 120)]
#[command(after_help = "Example: AUTH_TOKEN=demo SEED_FILE=data/seed.json flux-resourceset")]
struct Args {
    #[command(subcommand)]
    command: Option<Subcommands>,

    /// What is served: "read-only" answers polls, "crud" also takes changes.
    #[arg(long, env = "API_MODE", value_name = "MODE", default_value = "read-only")]
    api_mode: String,

    /// Where the log is kept: "sqlite", or "memory" for tests and tries.
    #[arg(long, env = "STORE_BACKEND", value_name = "BACKEND", default_value = "sqlite")]
    store_backend: String,

    /// The SQLite file; "mode" is ro, rw or rwc (made where missing).
    #[arg(
        long,
        env = "DATABASE_URL",
        value_name = "URL",
        default_value = "sqlite://data/flux-resourceset.db?mode=rwc"
    )]
    database_url: String,

    /// The bearer token that may read. Required; better given by the environment, since flags show in process lists.
    #[arg(long, env = "AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    auth_token: Option<String>,

    /// The bearer token that may read and write [default: that of AUTH_TOKEN].
    #[arg(long, env = "CRUD_AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    crud_auth_token: Option<String>,

    /// The documents with which a log that never had a change begins; empty for none [default: data/seed.json, if it
    /// is there].
    #[arg(long, env = "SEED_FILE", value_name = "FILE")]
    seed_file: Option<OsString>,

    /// A document to serve at /openapi.yaml instead of the one derived from the resource types, which for the built-in
    /// ones is openapi/openapi.yaml.
    #[arg(long, env = "OPENAPI_FILE", value_name = "FILE")]
    openapi_file: Option<PathBuf>,

    /// A directory of resource types that are added to the built-in ones, or replace those of the same kind.
    #[arg(long, env = "RESOURCES_DIR", value_name = "DIR", global = true)]
    resources_dir: Option<PathBuf>,

    /// How long changes are kept for audit and revert, such as "90d" or "12h", in mode crud [default: for ever].
    #[arg(long, env = "HISTORY_RETENTION", value_name = "TIME")]
    history_retention: Option<String>,

    /// The URL under which clusters call this server, for the manifests that new clusters install.
    #[arg(long, env = "PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,

    /// The address to listen on.
    #[arg(long, env = "LISTEN_ADDR", value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen_addr: String,

    /// What is logged, as tracing filter directives [default: info].
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    rust_log: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
enum Subcommands {
    /// Print the OpenAPI document of this server, in mode crud, and its resource types.
    Openapi,
    /// Write what every cluster installs for the resource types: providers, ResourceSets, examples of an identity.
    Clusters {
        /// The directory to write to.
        directory: PathBuf,
    },
}

/// What the program was asked to do.
#[derive(Debug)]
pub enum Command {
    /// Serve.
    Serve(Box<Config>),
    /// Print the OpenAPI document for the types of a directory.
    Openapi {
        /// The directory that adds to the built-in types.
        resources: Option<PathBuf>,
    },
    /// Write what every cluster installs for the types of a directory.
    Clusters {
        /// The directory that adds to the built-in types.
        resources: Option<PathBuf>,
        /// The directory to write to.
        directory: PathBuf,
    },
}

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Polls.
    ReadOnly,
    /// Polls and changes.
    Crud,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Crud => "crud",
        })
    }
}

/// Where the log is kept.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In this process.
    Memory,
    /// In a file.
    Sqlite(Box<SqliteDsn>),
}

/// The settings of a server.
#[derive(Debug)]
pub struct Config {
    /// What is served.
    pub mode: Mode,
    /// Where the log is kept.
    pub backend: Backend,
    /// Who may do what.
    pub tokens: Tokens,
    /// The documents with which a new log begins.
    pub seed: Option<PathBuf>,
    /// A document to serve instead of the derived one.
    pub openapi: Option<PathBuf>,
    /// The directory that adds to the built-in types.
    pub resources: Option<PathBuf>,
    /// How long changes are kept; for ever if nothing is said.
    pub retention: Option<SignedDuration>,
    /// What clusters call, if that is known.
    pub public_url: Option<ApiUrl>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// What is logged.
    pub log: tracing_subscriber::EnvFilter,
}

/// Why there is nothing to do, or nothing can be done.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not a command line; or help, or the version, which only look like errors.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// A setting that is missing or wrong.
    #[error("{name}: {what}")]
    Setting {
        /// The environment variable.
        name: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads the command line and the environment.
pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, ConfigError> {
    let args = Args::try_parse_from(args)?;
    match args.command {
        Some(Subcommands::Openapi) => Ok(Command::Openapi { resources: args.resources_dir }),
        Some(Subcommands::Clusters { directory }) => Ok(Command::Clusters { resources: args.resources_dir, directory }),
        None => args.config().map(|config| Command::Serve(Box::new(config))),
    }
}

impl Args {
    fn config(self) -> Result<Config, ConfigError> {
        let mode = match self.api_mode.as_str() {
            "read-only" => Mode::ReadOnly,
            "crud" => Mode::Crud,
            other => return bad("API_MODE", format!("\"{other}\" is not \"read-only\" or \"crud\"")),
        };
        let backend = match self.store_backend.as_str() {
            "memory" => Backend::Memory,
            "sqlite" => match self.database_url.parse() {
                Ok(dsn) => Backend::Sqlite(Box::new(dsn)),
                Err(error) => return bad("DATABASE_URL", error),
            },
            other => return bad("STORE_BACKEND", format!("\"{other}\" is not \"sqlite\" or \"memory\"")),
        };
        let Some(read) = self.auth_token else {
            return bad("AUTH_TOKEN", "it is required: set it to the bearer token that clusters send");
        };
        let read = token("AUTH_TOKEN", &read)?;
        let (write, writer) = match &self.crud_auth_token {
            Some(text) => (token("CRUD_AUTH_TOKEN", text)?, "crud-auth-token"),
            None => (read.clone(), "auth-token"),
        };
        let Ok(listen) = self.listen_addr.parse() else {
            let what = format!("\"{}\" is not an address and a port, such as 0.0.0.0:8080", self.listen_addr);
            return bad("LISTEN_ADDR", what);
        };
        let public_url = match self.public_url.filter(|text| !text.is_empty()).map(|text| text.parse()).transpose() {
            Ok(url) => url,
            Err(error) => return bad("PUBLIC_URL", error),
        };
        let retention = self.history_retention.as_deref().map(retention).transpose()?;
        let log = match tracing_subscriber::EnvFilter::try_new(self.rust_log.as_deref().unwrap_or("info")) {
            Ok(filter) => filter,
            Err(error) => return bad("RUST_LOG", error),
        };
        let seed = match self.seed_file {
            None => Some(PathBuf::from(DEFAULT_SEED)).filter(|file| file.exists()),
            Some(file) => Some(file).filter(|file| !file.is_empty()).map(PathBuf::from),
        };
        Ok(Config {
            mode,
            backend,
            tokens: Tokens { read, write, writer },
            seed,
            openapi: self.openapi_file,
            resources: self.resources_dir,
            retention,
            public_url,
            listen,
            log,
        })
    }
}

fn bad<T>(name: &'static str, what: impl ToString) -> Result<T, ConfigError> {
    Err(ConfigError::Setting { name, what: what.to_string() })
}

fn retention(text: &str) -> Result<SignedDuration, ConfigError> {
    let span = text.parse::<Span>().ok();
    let time = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    match time.filter(SignedDuration::is_positive) {
        Some(time) => Ok(time),
        None => bad("HISTORY_RETENTION", format!("\"{text}\" is not a time, such as 90d or 12h")),
    }
}

fn token(name: &'static str, text: &str) -> Result<Token, ConfigError> {
    match Token::new(text) {
        Some(token) => Ok(token),
        None => bad(name, "a token is printable ASCII without spaces, and not empty"),
    }
}
