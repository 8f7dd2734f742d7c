//! How answers look. Standard output is data, standard error is talk.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use model::{Value, yaml};

use crate::{
    escape::for_terminal,
    failure::{Failure, Result},
    table::Table,
};

/// What is wrong, or goes.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is good, or comes.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What changes.
pub(crate) const CHANGED: Style = AnsiColor::Yellow.on_default();
/// What leads the eye.
pub(crate) const STRONG: Style = Style::new().bold();

/// How to show an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// As the server says it
    Json,
    /// The same as YAML
    Yaml,
    /// What fits a terminal
    Table,
    /// A table with every column, in full
    Wide,
    /// kind/id, one a line
    Name,
}

/// An answer that can be shown in every format.
pub(crate) struct Shown {
    pub(crate) value: Value,
    pub(crate) names: Vec<String>,
    pub(crate) table: Table,
}

/// Where data goes, and in which format.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
    width: Option<usize>,
}

impl Output {
    /// The format that was asked for, or tables on a terminal and JSON in a pipe.
    pub(crate) fn new(asked: Option<Format>) -> Self {
        let terminal = io::stdout().is_terminal();
        let format = asked.unwrap_or(if terminal { Format::Table } else { Format::Json });
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self { format, width: width.filter(|_| terminal && format == Format::Table) }
    }

    /// Whether a person reads it.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self.format, Format::Table | Format::Wide)
    }

    pub(crate) fn show(self, shown: &Shown) -> Result<()> {
        match self.format {
            Format::Json => self.json(&shown.value),
            Format::Yaml => print(&as_yaml(&shown.value)?),
            Format::Name => shown.names.iter().try_for_each(|name| line(name)),
            Format::Table | Format::Wide => {
                print(&for_terminal(&shown.table.text(self.format == Format::Wide, self.width)))
            }
        }
    }

    /// What a command did: a sentence for people, the answer for programs.
    pub(crate) fn done(self, sentence: &str, names: &[String], value: &Value) -> Result<()> {
        match self.format {
            Format::Json => self.json(value),
            Format::Yaml => print(&as_yaml(value)?),
            Format::Name => names.iter().try_for_each(|name| line(name)),
            Format::Table | Format::Wide => line(&for_terminal(sentence)),
        }
    }

    #[expect(clippy::unused_self, reason = "it belongs to the others")]
    fn json(self, value: &Value) -> Result<()> {
        line(&serde_json::to_string_pretty(value)?)
    }
}

/// A value as YAML.
pub(crate) fn as_yaml(value: &Value) -> Result<String> {
    yaml::write(value).map_err(|error| Failure::failed(format!("this cannot be written as YAML: {error:?}")))
}

/// Writes data: as it is, but on a terminal.
pub(crate) fn print(text: &str) -> Result<()> {
    if io::stdout().is_terminal() { write(&for_terminal(text)) } else { write(text) }
}

fn write(text: &str) -> Result<()> {
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}

fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// Says something that is not data. Where even that cannot be said, there is nobody to tell.
pub(crate) fn talk(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(text));
}

/// Clears the terminal before an answer is shown anew.
pub(crate) fn clear() -> Result<()> {
    if io::stdout().is_terminal() { write("\x1b[H\x1b[2J") } else { Ok(()) }
}
