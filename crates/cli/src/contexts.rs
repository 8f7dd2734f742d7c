//! Contexts: named servers in a file, so that URLs and tokens need not be pasted.
//!
//! A context names the source of its tokens and never contains one. URL and tokens of a connection come from the same
//! source, either flags and environment or one context, so a token is never sent to another server.

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
    failure::{CliError, Result},
    files::{self, Privacy},
    output,
};

/// The default file, below the configuration folder of the user.
const FILE: &str = "flux-resourceset/config.yaml";
/// The variable that names another file.
pub(crate) const CONFIG: &str = "FLUX_API_CONFIG";

const TOKEN: &str = "a token is given as {env: VARIABLE}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}; \
    do not write the token itself here";

const CONTEXT: &str = "expected: current (a name), and contexts, each with url, token and write_token";

/// All contexts, and the name of the current one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// The URL of a server and the sources of its tokens.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<TokenSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) write_token: Option<TokenSource>,
}

/// The source of a token.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum TokenSource {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
    /// The output of a command.
    Command(Vec<String>),
}

impl TokenSource {
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    pub(crate) fn read(&self) -> Result<Token> {
        let (text, source) = match self {
            Self::Env(name) => (env::var(name).unwrap_or_default(), format!("the environment variable {name}")),
            Self::File(path) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    CliError::failed(format!("cannot read the token file {}: {error}", path.display()))
                })?;
                (text, format!("the file {}", path.display()))
            }
            Self::Command(command) => (output_of(command)?, format!("the command {}", command.join(" "))),
        };
        Token::new(&text).ok_or_else(|| {
            CliError::failed(format!(
                "{source} contains no valid token: a token is one word of printable ASCII characters"
            ))
        })
    }
}

fn output_of(command: &[String]) -> Result<String> {
    let [program, arguments @ ..] = command else {
        return Err(CliError::failed("the token command of the context is empty"));
    };
    let failed = |why: String| CliError::failed(format!("the token command {} failed: {why}", command.join(" ")));
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("its output is not UTF-8 text".to_owned()))
}

/// The path of the contexts file: the flag, else the environment variable, else the configuration folder of the user.
pub(crate) fn path(flag: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = flag {
        return Ok(path.to_owned());
    }
    if let Some(path) = env::var_os(CONFIG).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let home = etcetera::choose_base_strategy();
    let home =
        home.map_err(|error| CliError::failed(format!("the home folder is not known: {error}; set {CONFIG}")))?;
    Ok(home.config_dir().join(FILE))
}

impl Contexts {
    /// Reads the file. A file that does not exist contains no contexts.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CliError::failed(format!("{}: {error}", path.display()))),
        };
        let invalid = |line: usize, what: &str| CliError::failed(format!("{}:{line}: {what}", path.display()));
        let located = yaml::read(&text).map_err(|error| invalid(error.line, &error.message))?;
        model::decode(&located.value).map_err(|error| {
            // A misplaced value may be a token, so the message contains only names of fields.
            let message = match error.message.as_str() {
                _ if error.pointer.contains("token") => TOKEN,
                text if text.starts_with("unknown field") || text.starts_with("missing field") => text,
                _ => CONTEXT,
            };
            invalid(located.line(&error.pointer), message)
        })
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = output::as_yaml(&serde_json::to_value(self)?)?;
        // Follow a symbolic link, so that it is not replaced by a file.
        let real = fs::canonicalize(path);
        let path = real.as_deref().unwrap_or(path);
        files::write(path, &text, Privacy::Secret)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<_> = self.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            CliError::usage(format!("there is no context \"{name}\"; existing contexts: {known}"))
                .hint("to add one, run flux-resourceset-cli config set NAME --url URL")
        })
    }
}
