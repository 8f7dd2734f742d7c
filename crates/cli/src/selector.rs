//! Which documents are meant: `environment=dev,region=eu`.
//!
//! A key that is a field of the type filters by the field, and any other by the label of that name. So a misspelt field
//! finds nothing, and never everything.

use std::str::FromStr;

use client::ResourceType;

/// What has another meaning in a query. A type may have a field of such a name; to ask for it would ask for something else.
const PARAMETERS: [&str; 8] =
    ["all", "decommissioned", "dry_run", "expected_revision", "label", "limit", "offset", "revision"];

/// Pairs that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector(Vec<(String, String)>);

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |part: &str| {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("\"{part}\" is not key=value; several are separated by commas"))?;
            let (key, value) = (key.trim(), value.strip_prefix('=').unwrap_or(value).trim());
            if key.ends_with('!') {
                return Err(format!("\"{part}\": only key=value is understood, not key!=value"));
            }
            if PARAMETERS.contains(&key) {
                return Err(format!("\"{key}\" cannot be selected by: it is a parameter of the API"));
            }
            if key.is_empty() || value.is_empty() {
                return Err(format!("\"{part}\" needs a key and a value"));
            }
            Ok((key.to_owned(), value.to_owned()))
        };
        text.split(',').map(pair).collect::<Result<_, _>>().map(Self)
    }
}

impl Selector {
    /// The filters of a request.
    pub(crate) fn query(&self, ty: &ResourceType) -> Vec<(String, String)> {
        self.0.iter().map(|(key, value)| filter(ty, key, value)).collect()
    }
}

fn filter(ty: &ResourceType, key: &str, value: &str) -> (String, String) {
    let label = |key: &str| ("label".to_owned(), format!("{key}={value}"));
    if let Some(key) = key.strip_prefix("labels.") {
        return label(key);
    }
    match ty.field(key) {
        Some(field) if !is_compound(ty, field) => (key.to_owned(), value.to_owned()),
        _ => label(key),
    }
}

/// Whether a field cannot be filtered by. Of a cluster's lists, those of references can: by the id of one.
fn is_compound(ty: &ResourceType, field: &model::Value) -> bool {
    match field["type"].as_str() {
        Some("array") => !(ty.is_cluster() && field["items"]["properties"]["id"].is_object()),
        kind => kind == Some("object"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clusters() -> ResourceType {
        serde_json::from_value(json!({
            "kind": "cluster", "plural": "clusters", "path": "clusters", "description": "", "patchable": false, "nest": {},
            "schema": {"properties": {
                "environment": {"type": "string"}, "patches": {"type": "object"}, "labels": {"type": "object"},
                "namespaces": {"type": "array", "items": {"properties": {"id": {"type": "string"}}}}
            }}
        }))
        .unwrap()
    }

    #[test]
    fn fields_are_fields_and_everything_else_is_a_label() {
        let selector: Selector = "environment=dev, region=eu,namespaces=web,labels.environment==x".parse().unwrap();
        let pairs = selector.query(&clusters());
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        assert_eq!(pairs, ["environment:dev", "label:region=eu", "namespaces:web", "label:environment=x"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["", "dev", "limit=3", "a=b,", "=b", "a=", "environment!=prod"] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }
}
