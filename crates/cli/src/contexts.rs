//! Servers by name: a file of contexts, so that nobody pastes addresses and tokens.
//!
//! A context names where its tokens come from and never holds one. All of a connection comes from one place, the flags and
//! the environment or a context, so a token cannot reach a server that it is not for.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use client::Token;
use etcetera::BaseStrategy as _;
use model::yaml;
use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, Result},
    files::{self, Privacy},
    output,
};

/// The file, if there is none elsewhere.
const FILE: &str = "flux-resourceset/config.yaml";
/// Names another file.
pub(crate) const CONFIG: &str = "FLUX_API_CONFIG";

const TOKEN: &str =
    "a token is {env: VARIABLE}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}; the token itself does not belong here";

const CONTEXT: &str = "the file has current (a name) and contexts, each of which has url, token and write_token";

/// All contexts, and the one that is used.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// A server and where its tokens come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<TokenSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) write_token: Option<TokenSource>,
}

/// Where a token comes from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum TokenSource {
    /// A variable of the environment.
    Env(String),
    /// A file.
    File(PathBuf),
    /// What a command prints.
    Command(Vec<String>),
}

impl TokenSource {
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    pub(crate) fn read(&self) -> Result<Token> {
        let (text, place) = match self {
            Self::Env(name) => (env::var(name).unwrap_or_default(), format!("the variable {name}")),
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| Failure::failed(format!("the token's file {}: {error}", path.display())))?;
                (text, path.display().to_string())
            }
            Self::Command(command) => (printed(command)?, format!("the command {}", command.join(" "))),
        };
        Token::new(&text).ok_or_else(|| Failure::failed(format!("{place} gives no token, which is one word of text")))
    }
}

fn printed(command: &[String]) -> Result<String> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::failed("a context's token command is empty"));
    };
    let failed = |why: String| Failure::failed(format!("the token's command {}: {why}", command.join(" ")));
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("it prints what is no text".to_owned()))
}

/// Where the contexts are: what the flag says, else the environment, else the user's own folder.
pub(crate) fn path(flag: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = flag {
        return Ok(path.to_owned());
    }
    if let Some(path) = env::var_os(CONFIG).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let home = etcetera::choose_base_strategy();
    let home = home.map_err(|error| Failure::failed(format!("there is no home folder: {error}; set {CONFIG}")))?;
    Ok(home.config_dir().join(FILE))
}

impl Contexts {
    /// Reads the file; none there is no context.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::failed(format!("{}: {error}", path.display()))),
        };
        let place = |line: usize, what: &str| Failure::failed(format!("{}:{line}: {what}", path.display()));
        let located = yaml::read(&text).map_err(|error| place(error.line, &error.message))?;
        model::decode(&located.value).map_err(|error| {
            // What stands in a wrong place may be a token; only the names of fields are told.
            let message = match error.message.as_str() {
                _ if error.pointer.contains("token") => TOKEN,
                told if told.starts_with("unknown field") || told.starts_with("missing field") => told,
                _ => CONTEXT,
            };
            place(located.line(&error.pointer), message)
        })
    }

    /// Writes the file, wholly or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = output::as_yaml(&serde_json::to_value(self)?)?;
        // A link stays a link.
        let real = fs::canonicalize(path);
        let path = real.as_deref().unwrap_or(path);
        files::write(path, &text, Privacy::Secret)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<_> = self.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
            Failure::usage(format!("there is no context \"{name}\"; known: {known}"))
                .hint("flux-resourceset-cli config set NAME --url URL adds one")
        })
    }
}
