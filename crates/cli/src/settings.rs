//! `--set path=value` and its kin: the values of a component on clusters.
//!
//! A path is Helm's; a value is everything after the first `=`, whatever it holds. Helm's own `--set` would split it at
//! commas.

use std::{collections::BTreeSet, fs, str::FromStr};

use clap::Args;
use model::{Map, Value};

use crate::failure::{Failure, Result};

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err("it is written as name=value".to_owned()),
        }
    }
}

/// Pairs as an object of strings, none of which is said twice.
pub(crate) fn object(pairs: &[Pair]) -> Result<Map> {
    let mut object = Map::new();
    for Pair { key, value } in pairs {
        if object.insert(key.clone(), Value::String(value.clone())).is_some() {
            return Err(Failure::usage(format!("\"{key}\" is said twice")));
        }
    }
    Ok(object)
}

/// What to change about the values of a component.
#[derive(Args, Clone, Debug)]
pub(crate) struct Values {
    /// Set a value: a Helm path and any text, which may hold commas, quotes and line breaks
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Pair>,
    /// Set a value to what a file holds
    #[arg(long, value_name = "PATH=FILE")]
    set_file: Vec<Pair>,
    /// Take a value away
    #[arg(long, value_name = "PATH")]
    unset: Vec<String>,
}

impl Values {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.set_file.is_empty() && self.unset.is_empty()
    }

    /// As a merge patch: null takes a value away.
    pub(crate) fn patch(&self) -> Result<Map> {
        if self.is_empty() {
            return Err(Failure::usage("there is nothing to change: give --set, --set-file or --unset"));
        }
        let paths = self.set.iter().chain(&self.set_file).map(|pair| &pair.key);
        let mut seen = BTreeSet::new();
        for path in paths.chain(&self.unset) {
            if path.starts_with('$') {
                return Err(Failure::usage(format!("\"{path}\" is no path of a Helm value")));
            }
            if !seen.insert(path) {
                return Err(Failure::usage(format!("\"{path}\" is said twice")));
            }
        }
        let mut patch = object(&self.set)?;
        for Pair { key, value } in &self.set_file {
            let text = fs::read_to_string(value)
                .map_err(|error| Failure::failed(format!("--set-file {key}: {value}: {error}")))?;
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
    fn a_value_may_hold_anything() {
        for (text, key, value) in [
            ("replicaCount=3", "replicaCount", "3"),
            ("ui.message=a,b=c \"quoted\" 'too'", "ui.message", "a,b=c \"quoted\" 'too'"),
            ("script=one\ntwo\n", "script", "one\ntwo\n"),
            ("empty=", "empty", ""),
            (r#"node."kubernetes\.io/role"=x"#, r#"node."kubernetes\.io/role""#, "x"),
            ("hosts[0].name= spaced ", "hosts[0].name", " spaced "),
        ] {
            let expected = Pair { key: key.to_owned(), value: value.to_owned() };
            assert_eq!(text.parse(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_has_no_name_is_refused() {
        for text in ["", "novalue", "=x", " =x"] {
            assert!(text.parse::<Pair>().is_err(), "{text:?}");
        }
    }
}
