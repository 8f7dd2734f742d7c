//! `diff`: where files and the fleet differ, as text. Nothing is printed where nothing differs.

use std::process::ExitCode;

use clap::Args;
use model::{Map, Value};
use similar::TextDiff;

use crate::{
    commands::apply::{Desired, Difference},
    failure::Result,
    output::{self, BAD, CHANGED, GOOD, STRONG},
    session::Session,
};

#[derive(Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    desired: Desired,
}

impl Diff {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let found = self.desired.read(session)?;
        let comparison = self.desired.compare(session, &found)?;
        for difference in &comparison.differences {
            let (before, after) = match difference {
                Difference::Created(found) | Difference::Restored(found) => (None, Some(found.body.clone())),
                Difference::Changed(found, known) => (Some(known), Some(ordered_like(known, &found.body))),
                Difference::Pruned(_, known) => (Some(known), None),
            };
            let name = difference.name();
            output::print(&text((&format!("fleet/{name}"), before), (&format!("files/{name}"), after.as_ref()))?)?;
        }
        Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The differences of two documents, line by line, each with its name.
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

/// The same document with its members in the order of another one: order says nothing, and should not look as if it did.
pub(crate) fn ordered_like(model: &Map, document: &Map) -> Map {
    let known = model.iter().filter_map(|(name, like)| Some((name, like, document.get(name)?)));
    let mut ordered: Map = known
        .map(|(name, like, value)| {
            let value = match (like, value) {
                (Value::Object(like), Value::Object(value)) => Value::Object(ordered_like(like, value)),
                _ => value.clone(),
            };
            (name.clone(), value)
        })
        .collect();
    let others = document.iter().filter(|(name, _)| !model.contains_key(*name));
    ordered.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    ordered
}
