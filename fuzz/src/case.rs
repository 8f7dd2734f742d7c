//! A case: the requests or the text to send, in a form that is small enough for the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A text, or a repeated part of a body: an attack of 24 MB is one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum BodyPart {
    /// A text.
    Text(String),
    /// A text, so many times.
    Repeat { text: String, times: usize },
}

/// The text of all parts.
pub(crate) fn text_of(parts: &[BodyPart]) -> String {
    let text = |part: &BodyPart| match part {
        BodyPart::Text(text) => text.clone(),
        BodyPart::Repeat { text, times } => text.repeat(*times),
    };
    parts.iter().map(text).collect()
}

/// One request, with the write token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// The media type of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) body: Vec<BodyPart>,
}

/// Requests that are sent to one server, one after another; or a YAML text, as a person has it in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Case {
    /// Requests.
    Requests(Vec<Request>),
    /// A text.
    Yaml(Vec<BodyPart>),
}

/// The cases of a folder, in the order of their names.
pub(crate) fn read_all(folder: &Path) -> Vec<(PathBuf, Case)> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        let case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file, case)
    };
    files.into_iter().map(read).collect()
}

/// Saves a case.
pub(crate) fn write(file: &Path, case: &Case) {
    fs::write(file, serde_json::to_string_pretty(case).unwrap() + "\n").unwrap();
}
