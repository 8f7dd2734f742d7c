//! Configuration: every setting is an environment variable and a flag, typed and documented, and never prints a
//! secret. An invalid one is an error message that names it, and never a panic.

use std::{ffi::OsString, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Parser, Subcommand};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use manifests::ApiUrl;
use store::{PostgresDsn, SqliteDsn, Timeouts};

use crate::{
    SnapshotFileSettings,
    access::{Token, Tokens},
};

/// The seed file if `SEED_FILE` is not set.
const DEFAULT_SEED: &str = "data/seed.json";

/// Serves every cluster of a fleet the inputs of its Flux ResourceSets.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "these texts are the help")]
#[command(name = "flux-resourceset", version, max_term_width = 120)]
#[command(after_help = "Example: AUTH_TOKEN=demo SEED_FILE=data/seed.json flux-resourceset")]
struct Args {
    #[command(subcommand)]
    command: Option<Subcommands>,

    /// What is served: "read-only" answers polls, "crud" also accepts changes.
    #[arg(long, env = "API_MODE", value_name = "MODE", default_value = "read-only")]
    api_mode: String,

    /// Where the change log is stored: "sqlite", "postgres", or "memory" for tests [default: by the scheme of
    /// DATABASE_URL].
    #[arg(long, env = "STORE_BACKEND", value_name = "BACKEND", global = true)]
    store_backend: Option<String>,

    /// The SQLite file, where "mode" is ro, rw or rwc (created if missing); or the PostgreSQL database, such as
    /// postgres://user:password@host:5432/name?sslmode=verify-full&sslrootcert=ca.crt
    #[arg(
        long,
        env = "DATABASE_URL",
        value_name = "URL",
        default_value = "sqlite://data/flux-resourceset.db?mode=rwc",
        hide_env_values = true,
        global = true
    )]
    database_url: String,

    /// How many connections to PostgreSQL may be open for changes and reads; one or two more receive notifications.
    #[arg(long, env = "DATABASE_POOL_SIZE", value_name = "COUNT", default_value = "4", global = true)]
    database_pool_size: String,

    /// How long to wait for a connection to PostgreSQL.
    #[arg(long, env = "DATABASE_POOL_TIMEOUT", value_name = "TIME", default_value = "5s", global = true)]
    database_pool_timeout: String,

    /// How long a statement may take in PostgreSQL.
    #[arg(long, env = "DATABASE_STATEMENT_TIMEOUT", value_name = "TIME", default_value = "10s", global = true)]
    database_statement_timeout: String,

    /// Where this server saves the snapshot that it serves, for a start while the store is unavailable; empty for nowhere.
    #[arg(long, env = "SNAPSHOT_FILE", value_name = "FILE")]
    snapshot_file: Option<OsString>,

    /// How long this server may have been down if the snapshot of SNAPSHOT_FILE is to be served without the store.
    #[arg(long, env = "SNAPSHOT_MAX_AGE", value_name = "TIME", default_value = "1h")]
    snapshot_max_age: String,

    /// The bearer token that may read. Required. Set it by the environment: flags are visible in process lists.
    #[arg(long, env = "AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    auth_token: Option<String>,

    /// The bearer token that may read and write [default: that of AUTH_TOKEN].
    #[arg(long, env = "CRUD_AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    crud_auth_token: Option<String>,

    /// The documents of the first change, if the change log has none yet; empty for none [default: data/seed.json, if
    /// it exists].
    #[arg(long, env = "SEED_FILE", value_name = "FILE")]
    seed_file: Option<OsString>,

    /// A document to serve at /openapi.yaml instead of the one derived from the resource types (openapi/openapi.yaml
    /// for the built-in ones).
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

    /// A second address for /metrics, /health and /ready; /metrics is then served only there [default: none].
    #[arg(long, env = "ADMIN_ADDR", value_name = "ADDRESS")]
    admin_addr: Option<String>,

    /// What is logged, as tracing filter directives [default: info].
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    rust_log: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
#[expect(clippy::doc_markdown, reason = "these texts are the help")]
enum Subcommands {
    /// Print the OpenAPI document of this server with its resource types, in mode crud.
    Openapi,
    /// Write the manifests that every cluster installs for the resource types: providers, ResourceSets, example
    /// identities.
    Clusters {
        /// The directory to write to.
        directory: PathBuf,
    },
    /// Write the whole change log of the store to one file, which can be restored to any backend. The server may run.
    Backup {
        /// The file; "-" for standard output.
        file: PathBuf,
    },
    /// Restore a change log from a backup, or from the SNAPSHOT_FILE of a replica, which has no history.
    Restore {
        /// The file; "-" for standard input.
        file: PathBuf,
        /// Replace the change log of the store. Servers that serve a newer snapshot go on serving it until an operator
        /// accepts the restored change log.
        #[arg(long)]
        replace: bool,
    },
}

/// The command of the command line.
#[derive(Debug)]
pub enum Command {
    /// Serve.
    Serve(Box<Config>),
    /// Print the OpenAPI document for the types of a directory.
    Openapi {
        /// The directory that adds to the built-in types.
        resources: Option<PathBuf>,
    },
    /// Write the manifests that every cluster installs for the types of a directory.
    Clusters {
        /// The directory that adds to the built-in types.
        resources: Option<PathBuf>,
        /// The directory to write to.
        directory: PathBuf,
    },
    /// Write the change log of a store to a file.
    Backup {
        /// The store.
        backend: Backend,
        /// The file.
        file: PathBuf,
    },
    /// Restore the change log of a store from a file.
    Restore {
        /// The store.
        backend: Backend,
        /// The file.
        file: PathBuf,
        /// Whether a change log of the store is replaced.
        replace: bool,
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

/// Where the change log is stored.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In this process.
    Memory,
    /// In a file.
    Sqlite(Box<SqliteDsn>),
    /// In a database server.
    Postgres {
        /// Where it is.
        dsn: Box<PostgresDsn>,
        /// How many connections may be open.
        connections: u32,
        /// How long connections and statements may take.
        timeouts: Timeouts,
    },
}

/// The settings of a server.
#[derive(Debug)]
pub struct Config {
    /// What is served.
    pub mode: Mode,
    /// Where the change log is stored.
    pub backend: Backend,
    /// Who may do what.
    pub tokens: Tokens,
    /// The documents with which a new change log begins.
    pub seed: Option<PathBuf>,
    /// Where the served snapshot is saved.
    pub snapshot_file: Option<SnapshotFileSettings>,
    /// An OpenAPI document to serve instead of the derived one.
    pub openapi: Option<PathBuf>,
    /// The directory that adds to the built-in types.
    pub resources: Option<PathBuf>,
    /// How long changes are kept; for ever if it is not set.
    pub retention: Option<SignedDuration>,
    /// The URL under which clusters call this server, if it is known.
    pub public_url: Option<ApiUrl>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The second address for metrics and probes, if there is one.
    pub admin: Option<SocketAddr>,
    /// What is logged.
    pub log: tracing_subscriber::EnvFilter,
}

/// Why the command line and the environment give no command.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An invalid command line; or a request for help or the version, which clap returns as an error too.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// A setting that is missing or wrong.
    #[error("{name}: {message}")]
    Setting {
        /// The environment variable.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

/// Reads the command line and the environment.
pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, ConfigError> {
    let args = Args::try_parse_from(args)?;
    match args.command {
        Some(Subcommands::Openapi) => Ok(Command::Openapi { resources: args.resources_dir }),
        Some(Subcommands::Clusters { directory }) => Ok(Command::Clusters { resources: args.resources_dir, directory }),
        Some(Subcommands::Backup { ref file }) => {
            Ok(Command::Backup { backend: args.persistent_backend()?, file: file.clone() })
        }
        Some(Subcommands::Restore { ref file, replace }) => {
            Ok(Command::Restore { backend: args.persistent_backend()?, file: file.clone(), replace })
        }
        None => args.config().map(|config| Command::Serve(Box::new(config))),
    }
}

impl Args {
    fn backend(&self) -> Result<Backend, ConfigError> {
        let url = &self.database_url;
        let by_scheme = if PostgresDsn::has_scheme(url) { "postgres" } else { "sqlite" };
        match self.store_backend.as_deref().unwrap_or(by_scheme) {
            "memory" => Ok(Backend::Memory),
            "sqlite" => match url.parse() {
                Ok(dsn) => Ok(Backend::Sqlite(Box::new(dsn))),
                Err(error) => invalid("DATABASE_URL", error),
            },
            "postgres" => {
                let dsn = match url.parse() {
                    Ok(dsn) => Box::new(dsn),
                    Err(error) => return invalid::<Backend>("DATABASE_URL", error),
                };
                let Some(connections) = self.database_pool_size.parse().ok().filter(|count| (1..=100).contains(count))
                else {
                    return invalid("DATABASE_POOL_SIZE", format!("\"{}\" is not 1 to 100", self.database_pool_size));
                };
                let timeouts = Timeouts {
                    connection: timeout("DATABASE_POOL_TIMEOUT", &self.database_pool_timeout)?,
                    statement: timeout("DATABASE_STATEMENT_TIMEOUT", &self.database_statement_timeout)?,
                };
                Ok(Backend::Postgres { dsn, connections, timeouts })
            }
            other => invalid("STORE_BACKEND", format!("\"{other}\" is not \"sqlite\", \"postgres\" or \"memory\"")),
        }
    }

    /// A store that outlives this process.
    fn persistent_backend(&self) -> Result<Backend, ConfigError> {
        match self.backend()? {
            Backend::Memory => invalid(
                "STORE_BACKEND",
                "\"memory\" cannot be backed up or restored: its change log is lost when the process ends",
            ),
            persistent => Ok(persistent),
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let mode = match self.api_mode.as_str() {
            "read-only" => Mode::ReadOnly,
            "crud" => Mode::Crud,
            other => return invalid("API_MODE", format!("\"{other}\" is not \"read-only\" or \"crud\"")),
        };
        let backend = self.backend()?;
        let Some(read) = self.auth_token else {
            return invalid("AUTH_TOKEN", "it is required: set it to the bearer token that clusters send");
        };
        let read = token("AUTH_TOKEN", &read)?;
        let (write, writer) = match &self.crud_auth_token {
            Some(text) => (token("CRUD_AUTH_TOKEN", text)?, "crud-auth-token"),
            None => (read.clone(), "auth-token"),
        };
        let listen = address("LISTEN_ADDR", &self.listen_addr)?;
        let admin = self.admin_addr.as_deref().filter(|text| !text.is_empty());
        let admin = admin.map(|text| address("ADMIN_ADDR", text)).transpose()?;
        let public_url = match self.public_url.filter(|text| !text.is_empty()).map(|text| text.parse()).transpose() {
            Ok(url) => url,
            Err(error) => return invalid("PUBLIC_URL", error),
        };
        let retention = self.history_retention.as_deref().map(|text| time("HISTORY_RETENTION", text)).transpose()?;
        let max_age = time("SNAPSHOT_MAX_AGE", &self.snapshot_max_age)?;
        let file = self.snapshot_file.filter(|file| !file.is_empty()).map(PathBuf::from);
        if file.is_some() && matches!(backend, Backend::Memory) {
            return invalid(
                "SNAPSHOT_FILE",
                "it cannot be used with STORE_BACKEND \"memory\": a change log in memory is lost at every restart",
            );
        }
        let log = match tracing_subscriber::EnvFilter::try_new(self.rust_log.as_deref().unwrap_or("info")) {
            Ok(filter) => filter,
            Err(error) => return invalid("RUST_LOG", error),
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
            snapshot_file: file.map(|file| SnapshotFileSettings { file, max_age }),
            openapi: self.openapi_file,
            resources: self.resources_dir,
            retention,
            public_url,
            listen,
            admin,
            log,
        })
    }
}

fn invalid<T>(name: &'static str, message: impl ToString) -> Result<T, ConfigError> {
    Err(ConfigError::Setting { name, message: message.to_string() })
}

fn address(name: &'static str, text: &str) -> Result<SocketAddr, ConfigError> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => invalid(name, format!("\"{text}\" is not an address and a port, such as 0.0.0.0:8080")),
    }
}

fn time(name: &'static str, text: &str) -> Result<SignedDuration, ConfigError> {
    let span = text.parse::<Span>().ok();
    let time = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    match time.filter(SignedDuration::is_positive) {
        Some(time) => Ok(time),
        None => invalid(name, format!("\"{text}\" is not a time, such as 90d, 12h or 5s")),
    }
}

/// A timeout.
fn timeout(name: &'static str, text: &str) -> Result<Duration, ConfigError> {
    match Duration::try_from(time(name, text)?).ok().filter(|time| *time <= Duration::from_hours(1)) {
        Some(time) => Ok(time),
        None => invalid(name, format!("\"{text}\" is more than an hour")),
    }
}

fn token(name: &'static str, text: &str) -> Result<Token, ConfigError> {
    match Token::new(text) {
        Some(token) => Ok(token),
        None => invalid(name, "a token is printable ASCII without spaces, and not empty"),
    }
}
