//! The session of a command: the connection to the server, its resource types, and the output.

use std::{cell::OnceCell, env, path::PathBuf, process::ExitCode, thread, time::Duration};

use api::TypeDescription;
use clap::Args;
use client::{Client, Settings, Token, Types};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::{
    completion,
    contexts::{self, Contexts},
    documents,
    failure::{CliError, CliErrorKind, Result},
    output::{self, CommandOutput, OutputFormat, Printer},
};

/// Flags of every command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Output format [default: table on a terminal, json in a pipe]
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<OutputFormat>,
    #[arg(
        long,
        global = true,
        value_name = "URL",
        conflicts_with = "context",
        help = "URL of the server; the tokens come from FLUX_API_TOKEN and FLUX_API_WRITE_TOKEN [env: FLUX_API_URL]"
    )]
    api_url: Option<String>,
    /// Name of a server in the contexts file; its URL and tokens are used
    #[arg(long, global = true, value_name = "NAME", add = completion::completer(completion::contexts))]
    context: Option<String>,
    #[arg(long, global = true, value_name = "FILE", help = "Path of the contexts file [env: FLUX_API_CONFIG]")]
    pub(crate) config: Option<PathBuf>,
    /// Reason for the change, recorded in the audit trail
    #[arg(long, global = true, value_name = "TEXT")]
    reason: Option<String>,
    /// Timeout of one request, in seconds
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    timeout: u64,
    /// Print no messages except errors, plans and questions
    #[arg(short, long, global = true)]
    quiet: bool,
}

impl GlobalArgs {
    /// The same without --api-url: `bootstrap` uses that flag for the URL that the cluster calls.
    pub(crate) fn without_api_url(&self) -> Self {
        Self { api_url: None, ..self.clone() }
    }

    /// The flags of a command line that a shell completes.
    pub(crate) fn for_completion(api_url: Option<String>, context: Option<String>, config: Option<String>) -> Self {
        Self { api_url, context, config: config.map(PathBuf::from), ..Self::default() }
    }
}

/// Which tokens a command needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// As `Read`, but without running a token command, which may ask for a password.
    Complete,
    /// Only the read token: it is written to a Secret for a cluster.
    HandOut,
}

/// The connection to a server, its resource types, and the output.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) out: Printer,
    /// The source of the URL and the tokens: a flag, a variable or a context.
    pub(crate) origin: String,
    quiet: bool,
    types: OnceCell<Types>,
}

const RETRIES: u32 = 5;
/// Short names that kubectl uses as well.
const SHORT_NAMES: [(&str, &str); 2] = [("ns", "namespace"), ("rb", "rolebinding")];

impl Session {
    /// Finds the server and the tokens. Sends no request yet.
    pub(crate) fn open(global: &GlobalArgs, access: Access) -> Result<Self> {
        let (settings, origin) = connection_settings(global, access)?;
        let quiet = global.quiet;
        let client = Client::new(settings)?.on_waiting(move |pause, cause| {
            if !quiet {
                output::print_message(&format!("{cause}; retrying in {:.1} s", pause.as_secs_f64()));
            }
        });
        Ok(Self { client, out: Printer::new(global.output), origin, quiet, types: OnceCell::new() })
    }

    /// The resource types of the server, fetched once.
    pub(crate) fn types(&self) -> Result<&Types> {
        if let Some(types) = self.types.get() {
            return Ok(types);
        }
        let types = self.client.types().map_err(|error| match error.problem() {
            Some(problem) if problem.status == 404 => {
                CliError::failed(format!("the operator API is not enabled on {} (404)", self.client.url()))
                    .hint("use a server that runs with API_MODE=crud, or set it there")
            }
            _ => error.into(),
        })?;
        Ok(self.types.get_or_init(|| types))
    }

    /// The type that the command line names.
    pub(crate) fn resource_type(&self, name: &str) -> Result<&TypeDescription> {
        self.find_type(name)?.ok_or_else(|| {
            let known: Vec<_> = self.types.get().into_iter().flat_map(Types::iter).map(|ty| ty.kind.as_str()).collect();
            CliError::usage(format!(
                "there is no resource type \"{name}\"{}",
                did_you_mean(name, known.iter().copied())
            ))
            .hint(format!("resource types of this server: {}", known.join(", ")))
        })
    }

    /// The type that the command line names, if the server has it.
    pub(crate) fn find_type(&self, name: &str) -> Result<Option<&TypeDescription>> {
        Ok(self.types()?.by_name(full_name(name)))
    }

    pub(crate) fn cluster_type(&self) -> Result<&TypeDescription> {
        self.resource_type(model::ResourceType::CLUSTER)
    }

    /// All types that clusters refer to, or only the named one.
    pub(crate) fn definition_types(&self, name: Option<&str>) -> Result<Vec<&TypeDescription>> {
        match name {
            None => Ok(self.types()?.definitions().collect()),
            Some(name) => Ok(vec![self.definition_type(name)?]),
        }
    }

    /// A type that clusters refer to.
    pub(crate) fn definition_type(&self, name: &str) -> Result<&TypeDescription> {
        let ty = self.resource_type(name)?;
        if ty.is_cluster() {
            return Err(CliError::usage(
                "a cluster cannot be used here: only types that clusters refer to, such as namespace",
            ));
        }
        Ok(ty)
    }

    /// The answer about a document. If the document does not exist, the error suggests a similar id.
    pub(crate) fn with_suggestion<T>(
        &self,
        ty: &TypeDescription,
        id: &str,
        answer: Result<T, client::ClientError>,
    ) -> Result<T> {
        answer.map_err(|error| self.suggest_id(error.into(), [(ty, id)]))
    }

    /// A "not found" error about the first of the named documents that does not exist, with a similar id. Other errors
    /// are returned as they are.
    pub(crate) fn suggest_id<'a>(
        &self,
        error: CliError,
        named: impl IntoIterator<Item = (&'a TypeDescription, &'a str)>,
    ) -> CliError {
        if !error.is(CliErrorKind::NotFound) {
            return error;
        }
        for (ty, id) in named {
            // The list is only for suggestions: without it, the original error is returned.
            let Ok(documents) = self.client.list(ty, &[]) else { continue };
            let is_decommissioned = ty.is_cluster() && self.is_decommissioned(ty, id);
            if is_decommissioned || documents.iter().any(|document| documents::id(document) == id) {
                continue;
            }
            let suggestion = did_you_mean(id, documents.iter().map(documents::id));
            let hint = format!("to list all, run flux-resourceset-cli list {}", ty.plural);
            return CliError::new(CliErrorKind::NotFound, format!("there is no {} \"{id}\"{suggestion}", ty.kind))
                .hint(hint);
        }
        error
    }

    fn is_decommissioned(&self, clusters: &TypeDescription, id: &str) -> bool {
        self.client.get(clusters, id, None).is_err_and(|error| error.status() == Some(410))
    }

    /// Shows the output; with `watch`, again whenever it changes.
    pub(crate) fn show_or_watch(&self, watch: bool, read: impl Fn() -> Result<CommandOutput>) -> Result<ExitCode> {
        if !watch {
            self.out.show(&read()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        // Follow before reading, so that no change between the two is missed.
        let mut changes = Some(self.client.follow(None)?);
        let mut last = read()?;
        self.out.show(&last)?;
        loop {
            let changed = match &mut changes {
                Some(following) => following.next().is_some_and(|change| change.is_ok()),
                None => false,
            };
            if !changed {
                thread::sleep(Duration::from_secs(1));
                changes = self.client.follow(None).inspect_err(|error| self.message(&error.to_string())).ok();
            }
            match read() {
                Ok(next) if next.value != last.value => {
                    if self.out.is_for_people() {
                        output::clear()?;
                    }
                    self.out.show(&next)?;
                    last = next;
                }
                Ok(_) => {}
                Err(error) => self.message(error.text().trim_end()),
            }
        }
    }

    /// The URL of the server and its source, for people.
    pub(crate) fn server_description(&self) -> String {
        format!("{} ({})", self.client.url(), self.origin)
    }

    /// Prints a message to standard error, unless --quiet is set.
    pub(crate) fn message(&self, text: &str) {
        if !self.quiet {
            output::print_message(text);
        }
    }

    /// Shows a spinner on a terminal.
    pub(crate) fn spinner(&self, what: &str) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        // A change has no steps to count, so the spinner shows the elapsed time.
        let bar = bar.with_style(style("{spinner} {msg}, {elapsed}", ProgressStyle::default_spinner()));
        let bar = bar.with_message(what.to_owned()).with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Shows a progress bar on a terminal.
    pub(crate) fn progress_bar(&self, what: &str, all: u64) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new(all) };
        let style = style("{msg} {wide_bar} {pos}/{len}", ProgressStyle::default_bar());
        bar.with_style(style).with_message(what.to_owned()).with_finish(ProgressFinish::AndClear)
    }
}

/// The templates are constants. An invalid one falls back to the default style.
fn style(template: &str, plain: ProgressStyle) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or(plain)
}

/// The name of the type that a short name stands for.
pub(crate) fn full_name(name: &str) -> &str {
    SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, name)| *name)
}

/// `; did you mean "…"?` if a known name is similar.
fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    let close = known.map(|name| (strsim::jaro_winkler(typed, name), name)).filter(|(close, _)| *close > 0.8);
    let best = close.max_by(|one, other| one.0.total_cmp(&other.0));
    best.map_or_else(String::new, |(_, name)| format!("; did you mean \"{name}\"?"))
}

/// URL, tokens and limits of the connection, and the source of URL and tokens.
pub(crate) fn connection_settings(global: &GlobalArgs, access: Access) -> Result<(Settings, String)> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    let settings = |url, read, write| Settings {
        url,
        read,
        write,
        reason: global.reason.clone(),
        timeout: Duration::from_secs(global.timeout.max(1)),
        retries: RETRIES,
    };
    let url = global.api_url.clone().or_else(|| variable("FLUX_API_URL"));
    if let (Some(url), None) = (url, &global.context) {
        let token = |name: &str| match variable(name) {
            None => Ok(None),
            Some(text) => match Token::new(&text) {
                Some(token) => Ok(Some(token)),
                None => Err(CliError::usage(format!(
                    "{name} is not a valid token: a token is one word of printable ASCII characters"
                ))),
            },
        };
        let origin = if global.api_url.is_some() { "--api-url" } else { "FLUX_API_URL" };
        return Ok((settings(url, token("FLUX_API_TOKEN")?, token("FLUX_API_WRITE_TOKEN")?), origin.to_owned()));
    }
    let path = contexts::path(global.config.as_deref())?;
    let contexts = Contexts::read(&path)?;
    let Some(name) = global.context.as_ref().or(contexts.current.as_ref()) else {
        return Err(CliError::usage("no server is configured").hint(
            "set FLUX_API_URL, FLUX_API_TOKEN and FLUX_API_WRITE_TOKEN, or add a context: \
             flux-resourceset-cli config set NAME --url URL --token-env VARIABLE",
        ));
    };
    let context = contexts.get(name)?;
    // Reading a token may run a command that asks for a password, so only the needed tokens are read.
    let (token, write_token) = (context.token.as_ref(), context.write_token.as_ref());
    let needed = match access {
        Access::Read => (token.or(write_token), None),
        Access::Write => (token, write_token),
        Access::HandOut => (token, None),
        Access::Complete => (token.or(write_token).filter(|source| !source.is_command()), None),
    };
    let read = needed.0.map(contexts::TokenSource::read).transpose()?;
    let write = needed.1.map(contexts::TokenSource::read).transpose()?;
    Ok((settings(context.url.clone(), read, write), format!("context {name}")))
}
