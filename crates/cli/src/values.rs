//! `--set`, `--set-file` and `--unset`: the Helm values of a component on clusters.
//!
//! The path has Helm's syntax. The value is everything after the first `=`; unlike `helm --set`, it is not split at
//! commas.

use std::{collections::BTreeSet, fs, str::FromStr};

use clap::Args;
use model::{Map, Value};

use crate::failure::{CliError, Result};

/// `KEY=VALUE` of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl FromStr for KeyValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err("expected NAME=VALUE".to_owned()),
        }
    }
}

/// The pairs as an object of strings; a repeated key is an error.
pub(crate) fn string_object(pairs: &[KeyValue]) -> Result<Map> {
    let mut object = Map::new();
    for KeyValue { key, value } in pairs {
        if object.insert(key.clone(), Value::String(value.clone())).is_some() {
            return Err(CliError::usage(format!("\"{key}\" is given twice")));
        }
    }
    Ok(object)
}

/// The flags that change Helm values of a component.
#[derive(Args, Clone, Debug)]
pub(crate) struct ValueArgs {
    /// Set a Helm value; the value is any text, also with commas, quotes and line breaks
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<KeyValue>,
    /// Set a Helm value to the content of a file
    #[arg(long, value_name = "PATH=FILE")]
    set_file: Vec<KeyValue>,
    /// Remove a Helm value
    #[arg(long, value_name = "PATH")]
    unset: Vec<String>,
}

impl ValueArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.set_file.is_empty() && self.unset.is_empty()
    }

    /// As a merge patch: null removes a value.
    pub(crate) fn patch(&self) -> Result<Map> {
        if self.is_empty() {
            return Err(CliError::usage("nothing to change: use --set, --set-file or --unset"));
        }
        let paths = self.set.iter().chain(&self.set_file).map(|pair| &pair.key);
        let mut seen = BTreeSet::new();
        for path in paths.chain(&self.unset) {
            if path.starts_with('$') {
                return Err(CliError::usage(format!("\"{path}\" is not a valid Helm path: it begins with $")));
            }
            if !seen.insert(path) {
                return Err(CliError::usage(format!("\"{path}\" is given twice")));
            }
        }
        let mut patch = string_object(&self.set)?;
        for KeyValue { key, value } in &self.set_file {
            let text = fs::read_to_string(value)
                .map_err(|error| CliError::failed(format!("--set-file {key}: {value}: {error}")))?;
            patch.insert(key.clone(), Value::String(text));
        }
        patch.extend(self.unset.iter().map(|key| (key.clone(), Value::Null)));
        Ok(patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_any_text() {
        for (text, key, value) in [
            ("replicaCount=3", "replicaCount", "3"),
            ("ui.message=a,b=c \"quoted\" 'too'", "ui.message", "a,b=c \"quoted\" 'too'"),
            ("script=one\ntwo\n", "script", "one\ntwo\n"),
            ("empty=", "empty", ""),
            (r#"node."kubernetes\.io/role"=x"#, r#"node."kubernetes\.io/role""#, "x"),
            ("hosts[0].name= spaced ", "hosts[0].name", " spaced "),
        ] {
            let expected = KeyValue { key: key.to_owned(), value: value.to_owned() };
            assert_eq!(text.parse(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn a_pair_without_name_or_equals_sign_is_refused() {
        for text in ["", "novalue", "=x", " =x"] {
            assert!(text.parse::<KeyValue>().is_err(), "{text:?}");
        }
    }
}
