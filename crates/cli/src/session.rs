//! The server that commands talk to, what it knows, and where answers go.

use std::{cell::OnceCell, env, path::PathBuf, process::ExitCode, thread, time::Duration};

use api::TypeDescription;
use clap::Args;
use client::{Client, Settings, Token, Types};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::{
    completion,
    contexts::{self, Contexts},
    documents,
    failure::{Failure, Outcome, Result},
    output::{self, Format, Output, Shown},
};

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// How to show the answer [default: table on a terminal, json in a pipe]
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    #[arg(
        long,
        global = true,
        value_name = "URL",
        conflicts_with = "context",
        help = "The server's address, with tokens from the environment [env: FLUX_API_URL]"
    )]
    api_url: Option<String>,
    /// A server by its name in the config file
    #[arg(long, global = true, value_name = "NAME", add = completion::of(completion::contexts))]
    context: Option<String>,
    #[arg(long, global = true, value_name = "FILE", help = "The file of contexts [env: FLUX_API_CONFIG]")]
    pub(crate) config: Option<PathBuf>,
    /// Why, for the audit trail
    #[arg(long, global = true, value_name = "TEXT")]
    reason: Option<String>,
    /// How long one answer may take, in seconds
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    timeout: u64,
    /// Say nothing but what was asked for
    #[arg(short, long, global = true)]
    quiet: bool,
}

impl Global {
    /// Without an address of the line: a command may take that flag for something else.
    pub(crate) fn without_api_url(&self) -> Self {
        Self { api_url: None, ..self.clone() }
    }

    /// Only these, for the line that a shell completes.
    pub(crate) fn of(api_url: Option<String>, context: Option<String>, config: Option<String>) -> Self {
        Self { api_url, context, config: config.map(PathBuf::from), ..Self::default() }
    }
}

/// What a command may do with the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// As reading, and nothing that a person would notice.
    Complete,
    /// Only with the token for reading, which is given to clusters.
    HandOut,
}

/// A connection, the server's types, and the way of showing things.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) out: Output,
    /// Where the address and the tokens come from.
    pub(crate) origin: String,
    quiet: bool,
    types: OnceCell<Types>,
}

const RETRIES: u32 = 5;
/// Names that hands know from elsewhere.
const SHORT: [(&str, &str); 2] = [("ns", "namespace"), ("rb", "rolebinding")];

impl Session {
    /// Finds the server and the tokens; nothing is sent yet.
    pub(crate) fn open(global: &Global, access: Access) -> Result<Self> {
        let (settings, origin) = settings(global, access)?;
        let quiet = global.quiet;
        let client = Client::new(settings)?.on_waiting(move |pause, said| {
            if !quiet {
                output::talk(&format!("{said}; trying again in {:.1} s", pause.as_secs_f64()));
            }
        });
        Ok(Self { client, out: Output::new(global.output), origin, quiet, types: OnceCell::new() })
    }

    /// The types that the server knows; asked for once.
    pub(crate) fn types(&self) -> Result<&Types> {
        if let Some(types) = self.types.get() {
            return Ok(types);
        }
        let types = self.client.types().map_err(|error| match error.problem() {
            Some(problem) if problem.status == 404 => {
                Failure::failed(format!("{} does not have the operator's API (404)", self.client.url()))
                    .hint("a server takes an operator's commands with API_MODE=crud")
            }
            _ => error.into(),
        })?;
        Ok(self.types.get_or_init(|| types))
    }

    /// The type that a person names.
    pub(crate) fn ty(&self, name: &str) -> Result<&TypeDescription> {
        self.known(name)?.ok_or_else(|| {
            let known: Vec<_> = self.types.get().into_iter().flat_map(Types::iter).map(|ty| ty.kind.as_str()).collect();
            Failure::usage(format!("there is no resource type \"{name}\"{}", meant(name, known.iter().copied())))
                .hint(format!("this server knows {}", known.join(", ")))
        })
    }

    /// The type that a person names, if there is one.
    pub(crate) fn known(&self, name: &str) -> Result<Option<&TypeDescription>> {
        Ok(self.types()?.by_name(full_name(name)))
    }

    pub(crate) fn clusters(&self) -> Result<&TypeDescription> {
        self.ty(model::ResourceType::CLUSTER)
    }

    /// The types that clusters refer to, or the one that is named.
    pub(crate) fn definitions(&self, name: Option<&str>) -> Result<Vec<&TypeDescription>> {
        match name {
            None => Ok(self.types()?.definitions().collect()),
            Some(name) => Ok(vec![self.definition(name)?]),
        }
    }

    /// A type that clusters refer to.
    pub(crate) fn definition(&self, name: &str) -> Result<&TypeDescription> {
        let ty = self.ty(name)?;
        if ty.is_cluster() {
            return Err(Failure::usage("clusters refer to definitions, not to clusters"));
        }
        Ok(ty)
    }

    /// What the server answered about a document; if there is none, with the ids that may have been meant.
    pub(crate) fn about<T>(&self, ty: &TypeDescription, id: &str, answer: Result<T, client::ClientError>) -> Result<T> {
        answer.map_err(|error| self.missing(error.into(), [(ty, id)]))
    }

    /// A failure that says "not found", with the ids that may have been meant: of the named documents, the first that is
    /// not there is the one.
    pub(crate) fn missing<'a>(
        &self,
        failure: Failure,
        named: impl IntoIterator<Item = (&'a TypeDescription, &'a str)>,
    ) -> Failure {
        if !failure.is(Outcome::NotFound) {
            return failure;
        }
        for (ty, id) in named {
            // Only to help: without the list, the answer stands as it is.
            let Ok(documents) = self.client.list(ty, &[]) else { continue };
            let is_decommissioned = ty.is_cluster() && self.is_decommissioned(ty, id);
            if is_decommissioned || documents.iter().any(|document| documents::id(document) == id) {
                continue;
            }
            let meant = meant(id, documents.iter().map(documents::id));
            let hint = format!("flux-resourceset-cli list {} shows all there are", ty.plural);
            return Failure::new(Outcome::NotFound, format!("there is no {} \"{id}\"{meant}", ty.kind)).hint(hint);
        }
        failure
    }

    fn is_decommissioned(&self, clusters: &TypeDescription, id: &str) -> bool {
        self.client.get(clusters, id, None).is_err_and(|error| error.status() == Some(410))
    }

    /// Shows an answer, and again whenever it becomes another one.
    pub(crate) fn present(&self, watch: bool, read: impl Fn() -> Result<Shown>) -> Result<ExitCode> {
        if !watch {
            self.out.show(&read()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        // Follow first and read then, so that nothing falls between.
        let mut changes = Some(self.client.follow(None)?);
        let mut last = read()?;
        self.out.show(&last)?;
        loop {
            let came = match &mut changes {
                Some(following) => following.next().is_some_and(|change| change.is_ok()),
                None => false,
            };
            if !came {
                thread::sleep(Duration::from_secs(1));
                changes = self.client.follow(None).inspect_err(|error| self.say(&error.to_string())).ok();
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
                Err(failure) => self.say(failure.text().trim_end()),
            }
        }
    }

    /// The server, as a person knows it.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.client.url(), self.origin)
    }

    /// Says something that is not data.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            output::talk(text);
        }
    }

    /// Shows that work goes on, where somebody watches.
    pub(crate) fn working(&self, what: &str) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        // One change has no parts to count, but it can be told for how long it has been made.
        let bar = bar.with_style(style("{spinner} {msg}, {elapsed}", ProgressStyle::default_spinner()));
        let bar = bar.with_message(what.to_owned()).with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Shows how far work has come.
    pub(crate) fn counting(&self, what: &str, all: u64) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new(all) };
        let style = style("{msg} {wide_bar} {pos}/{len}", ProgressStyle::default_bar());
        bar.with_style(style).with_message(what.to_owned()).with_finish(ProgressFinish::AndClear)
    }
}

/// A template is a constant: if it were wrong, the bar would only look plain.
fn style(template: &str, plain: ProgressStyle) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or(plain)
}

/// The name of a type for a short one.
pub(crate) fn full_name(name: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, name)| *name)
}

/// "; did you mean …?", if something is close.
fn meant<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    let close = known.map(|name| (strsim::jaro_winkler(typed, name), name)).filter(|(close, _)| *close > 0.8);
    let best = close.max_by(|one, other| one.0.total_cmp(&other.0));
    best.map_or_else(String::new, |(_, name)| format!("; did you mean \"{name}\"?"))
}

pub(crate) fn settings(global: &Global, access: Access) -> Result<(Settings, String)> {
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
                None => Err(Failure::usage(format!("{name} is no token, which is one word of text"))),
            },
        };
        let origin = if global.api_url.is_some() { "--api-url" } else { "FLUX_API_URL" };
        return Ok((settings(url, token("FLUX_API_TOKEN")?, token("FLUX_API_WRITE_TOKEN")?), origin.to_owned()));
    }
    let path = contexts::path(global.config.as_deref())?;
    let contexts = Contexts::read(&path)?;
    let Some(name) = global.context.as_ref().or(contexts.current.as_ref()) else {
        return Err(Failure::usage("no server is named").hint(
            "set FLUX_API_URL, FLUX_API_TOKEN and FLUX_API_WRITE_TOKEN, or add a context: \
             flux-resourceset-cli config set NAME --url URL --token-env VARIABLE",
        ));
    };
    let context = contexts.get(name)?;
    // A token may cost a command that asks for a password: only what is needed is read.
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
