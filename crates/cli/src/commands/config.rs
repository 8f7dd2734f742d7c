//! `config`, `completions` and `man`: what needs no server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, CommandFactory as _, Subcommand, ValueEnum};
use clap_complete::env::Shells;
use client::{Client, Settings};

use crate::{
    arguments::Arguments,
    completion,
    contexts::{self, Context, Contexts, TokenSource},
    failure::{Failure, Result},
    output::{self, Output, Shown},
    session::Global,
    table::Table,
};

#[derive(Subcommand)]
pub(crate) enum Config {
    /// The contexts, with the current one marked
    List,
    /// The name of the current context
    Current,
    /// Make a context the current one
    Use {
        /// Which
        #[arg(add = completion::of(completion::contexts))]
        name: String,
    },
    /// Add a context, or change one
    Set(Set),
    /// Remove a context
    Delete {
        /// Which
        #[arg(add = completion::of(completion::contexts))]
        name: String,
    },
    /// Where the file is
    Path,
}

#[derive(Args)]
pub(crate) struct Set {
    /// Its name
    name: String,
    /// The server's address; needed for a new context
    #[arg(long)]
    url: Option<String>,
    /// The token for reading is in this variable
    #[arg(long, value_name = "VARIABLE", group = "read")]
    token_env: Option<String>,
    /// The token for reading is in this file
    #[arg(long, value_name = "FILE", group = "read")]
    token_file: Option<PathBuf>,
    /// The token for reading is printed by this command
    #[arg(long, value_name = "COMMAND", group = "read")]
    token_command: Option<String>,
    /// The token for changes is in this variable
    #[arg(long, value_name = "VARIABLE", group = "write")]
    write_token_env: Option<String>,
    /// The token for changes is in this file
    #[arg(long, value_name = "FILE", group = "write")]
    write_token_file: Option<PathBuf>,
    /// The token for changes is printed by this command
    #[arg(long, value_name = "COMMAND", group = "write")]
    write_token_command: Option<String>,
}

impl Config {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode> {
        let path = contexts::path(global.config.as_deref())?;
        let mut known = Contexts::read(&path)?;
        match self {
            Self::List => Output::new(global.output).show(&shown(&known)?)?,
            Self::Current => {
                let none = || Failure::failed("no context is current").hint("flux-resourceset-cli config use NAME");
                output::print(&format!("{}\n", known.current.as_ref().ok_or_else(none)?))?;
            }
            Self::Use { name } => {
                known.get(name)?;
                known.current = Some(name.clone());
                written(&known, &path, &format!("{name} is the current context"))?;
            }
            Self::Set(set) => {
                set.put(&mut known)?;
                written(&known, &path, &format!("context {} is set", set.name))?;
            }
            Self::Delete { name } => {
                known.get(name)?;
                known.contexts.remove(name);
                known.current = known.current.filter(|current| current != name);
                written(&known, &path, &format!("context {name} is removed"))?;
            }
            Self::Path => output::print(&format!("{}\n", path.display()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn written(contexts: &Contexts, path: &Path, said: &str) -> Result<()> {
    contexts.write(path)?;
    output::talk(said);
    Ok(())
}

impl Set {
    fn put(&self, contexts: &mut Contexts) -> Result<()> {
        let known = contexts.contexts.get(&self.name).cloned();
        let url = self.url.clone().or_else(|| known.as_ref().map(|known| known.url.clone()));
        let url = url.ok_or_else(|| Failure::usage("a new context needs --url"))?;
        // Whether it can be used is better said now.
        let timeout = Duration::from_secs(1);
        Client::new(Settings { url: url.clone(), read: None, write: None, reason: None, timeout, retries: 0 })?;
        for name in [&self.token_env, &self.write_token_env].into_iter().flatten() {
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(Failure::usage(
                    "a variable's name has letters, digits and _; the token itself is not given here",
                ));
            }
        }
        let (read, write) = known.map_or((None, None), |known| (known.token, known.write_token));
        let token = source(self.token_env.as_ref(), self.token_file.as_ref(), self.token_command.as_ref())?;
        let write_token =
            source(self.write_token_env.as_ref(), self.write_token_file.as_ref(), self.write_token_command.as_ref())?;
        let context = Context { url, token: token.or(read), write_token: write_token.or(write) };
        contexts.contexts.insert(self.name.clone(), context);
        // The first one is the one that is meant.
        contexts.current.get_or_insert_with(|| self.name.clone());
        Ok(())
    }
}

fn source(env: Option<&String>, file: Option<&PathBuf>, command: Option<&String>) -> Result<Option<TokenSource>> {
    Ok(match (env, file, command) {
        (Some(name), ..) => Some(TokenSource::Env(name.clone())),
        (_, Some(path), _) => Some(TokenSource::File(std::path::absolute(path)?)),
        (.., Some(command)) => {
            let words = shlex::split(command).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| Failure::usage(format!("this is no command: {command}")))?;
            Some(TokenSource::Command(words))
        }
        _ => None,
    })
}

fn shown(contexts: &Contexts) -> Result<Shown> {
    let rows = || contexts.contexts.iter();
    let from = |source: Option<&TokenSource>| match source {
        None => "-".to_owned(),
        Some(TokenSource::Env(name)) => format!("env {name}"),
        Some(TokenSource::File(path)) => format!("file {}", path.display()),
        Some(TokenSource::Command(words)) => format!("command {}", words.join(" ")),
    };
    let current = |name: &String| contexts.current.as_ref() == Some(name);
    let table = if contexts.contexts.is_empty() {
        Table::default().note("There are no contexts: flux-resourceset-cli config set NAME --url URL adds one.")
    } else {
        Table::default()
            .key("CURRENT", rows().map(|(name, _)| if current(name) { "*".to_owned() } else { String::new() }))
            .key("NAME", rows().map(|(name, _)| name.clone()))
            .column("URL", rows().map(|(_, context)| context.url.clone()))
            .column("TOKEN", rows().map(|(_, context)| from(context.token.as_ref())))
            .column("WRITE-TOKEN", rows().map(|(_, context)| from(context.write_token.as_ref())))
    };
    Ok(Shown { value: serde_json::to_value(contexts)?, names: contexts.contexts.keys().cloned().collect(), table })
}

/// A shell.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bash:        source <(flux-resourceset-cli completions bash)\n  \
    zsh:         source <(flux-resourceset-cli completions zsh)\n  \
    fish:        flux-resourceset-cli completions fish | source\n  \
    powershell:  flux-resourceset-cli completions powershell | Out-String | Invoke-Expression")]
pub(crate) struct Completions {
    /// Your shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let shells = Shells::builtins();
        let name = match self.shell {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
            Shell::Powershell => "powershell",
        };
        let shell = shells.completer(name).ok_or_else(|| Failure::failed(format!("{name} cannot be completed")))?;
        let program = env!("CARGO_BIN_NAME");
        let mut script = Vec::new();
        shell.write_registration("COMPLETE", program, program, program, &mut script)?;
        io::Write::write_all(&mut io::stdout(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args)]
pub(crate) struct Man {
    /// Write a page for every command into this folder; without it, the first page is printed
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let command = Arguments::command();
        match &self.output_dir {
            Some(folder) => {
                fs::create_dir_all(folder)?;
                clap_mangen::generate_to(command, folder)?;
            }
            None => clap_mangen::Man::new(command).render(&mut io::stdout())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
