//! Output: data goes to standard output, messages go to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use model::{Value, yaml};

use crate::{
    escape::for_terminal,
    failure::{CliError, Result},
    table::TextTable,
};

/// Errors and removals.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Hints and additions.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Changes.
pub(crate) const CHANGED: Style = AnsiColor::Yellow.on_default();
/// Headings.
pub(crate) const STRONG: Style = Style::new().bold();

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// JSON, as the server sends it
    Json,
    /// The same data as YAML
    Yaml,
    /// Columns, shortened to fit the terminal
    Table,
    /// All columns in full length
    Wide,
    /// kind/id, one per line
    Name,
}

/// The output of a command, in every format.
pub(crate) struct CommandOutput {
    pub(crate) value: Value,
    pub(crate) names: Vec<String>,
    pub(crate) table: TextTable,
}

/// Writes data to standard output in the selected format.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    pub(crate) format: OutputFormat,
    width: Option<usize>,
}

impl Printer {
    /// The selected format, or tables on a terminal and JSON in a pipe.
    pub(crate) fn new(selected: Option<OutputFormat>) -> Self {
        let terminal = io::stdout().is_terminal();
        let format = selected.unwrap_or(if terminal { OutputFormat::Table } else { OutputFormat::Json });
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self { format, width: width.filter(|_| terminal && format == OutputFormat::Table) }
    }

    /// Whether the format is for people.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self.format, OutputFormat::Table | OutputFormat::Wide)
    }

    pub(crate) fn show(self, output: &CommandOutput) -> Result<()> {
        match self.format {
            OutputFormat::Json => self.json(&output.value),
            OutputFormat::Yaml => print(&as_yaml(&output.value)?),
            OutputFormat::Name => output.names.iter().try_for_each(|name| line(name)),
            OutputFormat::Table | OutputFormat::Wide => {
                print(&for_terminal(&output.table.text(self.format == OutputFormat::Wide, self.width)))
            }
        }
    }

    /// Reports what a command did: a sentence for people, the answer of the server for programs.
    pub(crate) fn report_done(self, sentence: &str, names: &[String], value: &Value) -> Result<()> {
        match self.format {
            OutputFormat::Json => self.json(value),
            OutputFormat::Yaml => print(&as_yaml(value)?),
            OutputFormat::Name => names.iter().try_for_each(|name| line(name)),
            OutputFormat::Table | OutputFormat::Wide => line(&for_terminal(sentence)),
        }
    }

    #[allow(clippy::unused_self, reason = "a method like the writers of the other formats")]
    fn json(self, value: &Value) -> Result<()> {
        line(&serde_json::to_string_pretty(value)?)
    }
}

/// A value as YAML.
pub(crate) fn as_yaml(value: &Value) -> Result<String> {
    yaml::write(value).map_err(|error| CliError::failed(format!("the answer cannot be written as YAML: {error:?}")))
}

/// Writes data: escaped on a terminal, unchanged in a pipe.
pub(crate) fn print(text: &str) -> Result<()> {
    if io::stdout().is_terminal() { write(&for_terminal(text)) } else { write(text) }
}

fn write(text: &str) -> Result<()> {
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}

fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a message to standard error. A failure to write it cannot be reported anywhere, so it is ignored.
pub(crate) fn print_message(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(text));
}

/// Clears the terminal before the output is shown again.
pub(crate) fn clear() -> Result<()> {
    if io::stdout().is_terminal() { write("\x1b[H\x1b[2J") } else { Ok(()) }
}
