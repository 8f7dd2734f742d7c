//! `diff`: the differences between files and the fleet, as text. Prints nothing if there are none.

use std::process::ExitCode;

use clap::Args;
use model::{Map, Value};
use similar::TextDiff;

use crate::{
    commands::apply::{DesiredState, DocumentDifference},
    failure::Result,
    output::{self, BAD, CHANGED, GOOD, STRONG},
    session::Session,
};

#[derive(Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    desired: DesiredState,
}

impl DiffArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let file_documents = self.desired.read(session)?;
        let comparison = self.desired.compare(session, &file_documents)?;
        for difference in &comparison.differences {
            let (before, after) = match difference {
                DocumentDifference::Created(document) | DocumentDifference::Restored(document) => {
                    (None, Some(document.body.clone()))
                }
                DocumentDifference::Changed(document, current) => {
                    (Some(current), Some(ordered_like(current, &document.body)))
                }
                DocumentDifference::Pruned(_, current) => (Some(current), None),
            };
            let name = difference.name();
            output::print(&text((&format!("fleet/{name}"), before), (&format!("files/{name}"), after.as_ref()))?)?;
        }
        Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The line differences of two named documents.
pub(crate) fn text(before: (&str, Option<&Map>), after: (&str, Option<&Map>)) -> Result<String> {
    let yaml = |document: Option<&Map>| match document {
        Some(document) => output::as_yaml(&Value::Object(document.clone())),
        None => Ok(String::new()),
    };
    let (before_text, after_text) = (yaml(before.1)?, yaml(after.1)?);
    let header = |(name, document): (&str, Option<&Map>)| document.map_or("/dev/null", |_| name).to_owned();
    let diff = TextDiff::from_lines(&before_text, &after_text);
    let diff = diff.unified_diff().context_radius(3).header(&header(before), &header(after)).to_string();
    Ok(diff.lines().map(coloured).collect())
}

fn coloured(line: &str) -> String {
    let style = match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => STRONG,
        [b'@', ..] => CHANGED,
        [b'-', ..] => BAD,
        [b'+', ..] => GOOD,
        _ => return format!("{line}\n"),
    };
    format!("{style}{line}{style:#}\n")
}

/// The document with its members in the order of another one, so that a different order is not shown as a difference.
pub(crate) fn ordered_like(reference: &Map, document: &Map) -> Map {
    let shared = reference.iter().filter_map(|(name, like)| Some((name, like, document.get(name)?)));
    let mut ordered: Map = shared
        .map(|(name, like, value)| {
            let value = match (like, value) {
                (Value::Object(like), Value::Object(value)) => Value::Object(ordered_like(like, value)),
                _ => value.clone(),
            };
            (name.clone(), value)
        })
        .collect();
    let others = document.iter().filter(|(name, _)| !reference.contains_key(*name));
    ordered.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    ordered
}
