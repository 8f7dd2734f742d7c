//! Selectors: `environment=dev,region=eu`.
//!
//! A key that the server can filter by is a field. Any other key is a label, so a misspelt field selects nothing
//! instead of everything.

use std::str::FromStr;

use api::TypeDescription;

/// Key-value pairs. All of them must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector(Vec<(String, String)>);

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |part: &str| {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("\"{part}\" is not key=value; separate several pairs by commas"))?;
            let (key, value) = (key.trim(), value.strip_prefix('=').unwrap_or(value).trim());
            if key.ends_with('!') {
                return Err(format!("\"{part}\": only key=value is supported, not key!=value"));
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
    /// The query parameters of a request.
    pub(crate) fn query(&self, ty: &TypeDescription) -> Vec<(String, String)> {
        self.0.iter().map(|(key, value)| filter(ty, key, value)).collect()
    }
}

fn filter(ty: &TypeDescription, key: &str, value: &str) -> (String, String) {
    let label = |key: &str| ("label".to_owned(), format!("{key}={value}"));
    match key.strip_prefix("labels.") {
        Some(key) => label(key),
        None if ty.filters.iter().any(|filter| filter == key) => (key.to_owned(), value.to_owned()),
        None => label(key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clusters() -> TypeDescription {
        serde_json::from_value(json!({
            "kind": "cluster", "plural": "clusters", "path": "clusters", "description": "", "patchable": false, "nest": {},
            "filters": ["environment", "namespaces"], "schema": {}
        }))
        .unwrap()
    }

    #[test]
    fn a_key_that_is_not_a_field_is_a_label() {
        let selector: Selector =
            "environment=dev, region=eu,namespaces=web,labels.environment==x,limit=3".parse().unwrap();
        let pairs = selector.query(&clusters());
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        assert_eq!(
            pairs,
            ["environment:dev", "label:region=eu", "namespaces:web", "label:environment=x", "label:limit=3"]
        );
    }

    #[test]
    fn an_invalid_selector_is_refused() {
        for text in ["", "dev", "a=b,", "=b", "a=", "environment!=prod"] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }
}
