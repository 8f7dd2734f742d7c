//! `config`, `completions` and `man`: commands that need no server.

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
    failure::{CliError, Result},
    output::{self, CommandOutput, Printer},
    session::GlobalArgs,
    table::TextTable,
};

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the contexts; the current one is marked
    List,
    /// Print the name of the current context
    Current,
    /// Select the current context
    Use {
        /// Name of the context
        #[arg(add = completion::completer(completion::contexts))]
        name: String,
    },
    /// Add or change a context
    Set(SetContextArgs),
    /// Remove a context
    Delete {
        /// Name of the context
        #[arg(add = completion::completer(completion::contexts))]
        name: String,
    },
    /// Print the path of the contexts file
    Path,
}

#[derive(Args)]
pub(crate) struct SetContextArgs {
    /// Name of the context
    name: String,
    /// URL of the server; required for a new context
    #[arg(long)]
    url: Option<String>,
    /// Read token: name of the environment variable that contains it
    #[arg(long, value_name = "VARIABLE", group = "read")]
    token_env: Option<String>,
    /// Read token: file that contains it
    #[arg(long, value_name = "FILE", group = "read")]
    token_file: Option<PathBuf>,
    /// Read token: command that prints it
    #[arg(long, value_name = "COMMAND", group = "read")]
    token_command: Option<String>,
    /// Write token: name of the environment variable that contains it
    #[arg(long, value_name = "VARIABLE", group = "write")]
    write_token_env: Option<String>,
    /// Write token: file that contains it
    #[arg(long, value_name = "FILE", group = "write")]
    write_token_file: Option<PathBuf>,
    /// Write token: command that prints it
    #[arg(long, value_name = "COMMAND", group = "write")]
    write_token_command: Option<String>,
}

impl ConfigCommand {
    pub(crate) fn run(&self, global: &GlobalArgs) -> Result<ExitCode> {
        let path = contexts::path(global.config.as_deref())?;
        let mut contexts = Contexts::read(&path)?;
        match self {
            Self::List => Printer::new(global.output).show(&command_output(&contexts)?)?,
            Self::Current => {
                let none = || {
                    CliError::failed("no current context is selected")
                        .hint("to select one, run flux-resourceset-cli config use NAME")
                };
                output::print(&format!("{}\n", contexts.current.as_ref().ok_or_else(none)?))?;
            }
            Self::Use { name } => {
                contexts.get(name)?;
                contexts.current = Some(name.clone());
                save(&contexts, &path, &format!("the current context is {name}"))?;
            }
            Self::Set(set) => {
                set.apply_to(&mut contexts)?;
                save(&contexts, &path, &format!("context {} saved", set.name))?;
            }
            Self::Delete { name } => {
                contexts.get(name)?;
                contexts.contexts.remove(name);
                contexts.current = contexts.current.filter(|current| current != name);
                save(&contexts, &path, &format!("context {name} deleted"))?;
            }
            Self::Path => output::print(&format!("{}\n", path.display()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn save(contexts: &Contexts, path: &Path, message: &str) -> Result<()> {
    contexts.write(path)?;
    output::print_message(message);
    Ok(())
}

impl SetContextArgs {
    fn apply_to(&self, contexts: &mut Contexts) -> Result<()> {
        let known = contexts.contexts.get(&self.name).cloned();
        let url = self.url.clone().or_else(|| known.as_ref().map(|known| known.url.clone()));
        let url = url.ok_or_else(|| CliError::usage("--url is required for a new context"))?;
        // Check the URL now and not at the first use.
        let timeout = Duration::from_secs(1);
        Client::new(Settings { url: url.clone(), read: None, write: None, reason: None, timeout, retries: 0 })?;
        for name in [&self.token_env, &self.write_token_env].into_iter().flatten() {
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(CliError::usage(
                    "the name of a variable consists of letters, digits and _; do not give the token itself",
                ));
            }
        }
        let (read, write) = known.map_or((None, None), |known| (known.token, known.write_token));
        let token = source(self.token_env.as_ref(), self.token_file.as_ref(), self.token_command.as_ref())?;
        let write_token =
            source(self.write_token_env.as_ref(), self.write_token_file.as_ref(), self.write_token_command.as_ref())?;
        let context = Context { url, token: token.or(read), write_token: write_token.or(write) };
        contexts.contexts.insert(self.name.clone(), context);
        // The first context becomes the current one.
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
            let words = words.ok_or_else(|| CliError::usage(format!("not a valid command: {command}")))?;
            Some(TokenSource::Command(words))
        }
        _ => None,
    })
}

fn command_output(contexts: &Contexts) -> Result<CommandOutput> {
    let rows = || contexts.contexts.iter();
    let source_text = |source: Option<&TokenSource>| match source {
        None => "-".to_owned(),
        Some(TokenSource::Env(name)) => format!("env {name}"),
        Some(TokenSource::File(path)) => format!("file {}", path.display()),
        Some(TokenSource::Command(words)) => format!("command {}", words.join(" ")),
    };
    let current = |name: &String| contexts.current.as_ref() == Some(name);
    let table = if contexts.contexts.is_empty() {
        TextTable::default()
            .note("There are no contexts. To add one, run flux-resourceset-cli config set NAME --url URL")
    } else {
        TextTable::default()
            .key("CURRENT", rows().map(|(name, _)| if current(name) { "*".to_owned() } else { String::new() }))
            .key("NAME", rows().map(|(name, _)| name.clone()))
            .column("URL", rows().map(|(_, context)| context.url.clone()))
            .column("TOKEN", rows().map(|(_, context)| source_text(context.token.as_ref())))
            .column("WRITE-TOKEN", rows().map(|(_, context)| source_text(context.write_token.as_ref())))
    };
    Ok(CommandOutput {
        value: serde_json::to_value(contexts)?,
        names: contexts.contexts.keys().cloned().collect(),
        table,
    })
}

/// A shell that can complete commands.
#[derive(Clone, Copy, ValueEnum)]
enum CompletionShell {
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
pub(crate) struct CompletionsArgs {
    /// Name of your shell
    #[arg(value_enum)]
    shell: CompletionShell,
}

impl CompletionsArgs {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let shells = Shells::builtins();
        let name = match self.shell {
            CompletionShell::Bash => "bash",
            CompletionShell::Zsh => "zsh",
            CompletionShell::Fish => "fish",
            CompletionShell::Powershell => "powershell",
        };
        let shell = shells
            .completer(name)
            .ok_or_else(|| CliError::failed(format!("completions for {name} are not supported")))?;
        let program = env!("CARGO_BIN_NAME");
        let mut script = Vec::new();
        shell.write_registration("COMPLETE", program, program, program, &mut script)?;
        io::Write::write_all(&mut io::stdout(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// Folder for one page per command [default: print the main page]
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

impl ManArgs {
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
