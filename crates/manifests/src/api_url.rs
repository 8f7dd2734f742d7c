//! The URL under which clusters call the API.

use std::{fmt, str::FromStr};

use http::Uri;

/// A base URL for manifests: a scheme, a host, perhaps a port and a path, and no character that a template, a substitution or a
/// query would interpret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiUrl(String);

/// A text that is not such a URL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "\"{0}\" is not a URL such as https://fleet.example.com: a scheme (https or http), a host, perhaps a port and a path"
)]
pub struct InvalidApiUrl(String);

impl ApiUrl {
    /// The URL in examples.
    pub(crate) fn example() -> Self {
        Self("https://internal-api.internal.example.com".to_owned())
    }

    /// Whether requests to it are not encrypted.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.0.starts_with("http://")
    }
}

impl FromStr for ApiUrl {
    type Err = InvalidApiUrl;

    fn from_str(text: &str) -> Result<Self, InvalidApiUrl> {
        let trimmed = text.trim_end_matches('/');
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
        let scheme = ["https://", "http://"].iter().find_map(|scheme| trimmed.strip_prefix(scheme));
        let valid =
            scheme.is_some_and(|rest| rest.chars().all(allowed)) && trimmed.parse().is_ok_and(|uri| is_valid(&uri));
        if valid { Ok(Self(trimmed.to_owned())) } else { Err(InvalidApiUrl(text.to_owned())) }
    }
}

fn is_valid(uri: &Uri) -> bool {
    let Some(authority) = uri.authority() else { return false };
    let named = |host: &str| host.split('.').all(|label| !label.is_empty());
    // After the host there is only a port; the parser also accepts other text there.
    let rest = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    named(authority.host()) && (rest.is_empty() || authority.port_u16().is_some_and(|port| rest == format!(":{port}")))
}

impl fmt::Display for ApiUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_slash_is_removed() {
        for (text, url) in [
            ("https://fleet.example.com", "https://fleet.example.com"),
            ("https://fleet.example.com/", "https://fleet.example.com"),
            (
                "http://flux-api-read.flux-system.svc.cluster.local:8080",
                "http://flux-api-read.flux-system.svc.cluster.local:8080",
            ),
            ("https://[2001:db8::1]:8443/fleet/", "https://[2001:db8::1]:8443/fleet"),
        ] {
            assert_eq!(text.parse::<ApiUrl>().unwrap().to_string(), url);
        }
    }

    #[test]
    fn a_url_that_a_template_or_a_query_could_change_is_refused() {
        for text in [
            "",
            "fleet.example.com",
            "ftp://x",
            "https://",
            "https:///x",
            "https://a b",
            "https://a?b",
            "https://a#b",
            "https://user@a",
            "https://${X}",
            "https://<<a>>",
            "https://a\"",
            "https://a\nb",
            "HTTPS://a",
            "https://[",
            "https://a:b:c",
            "https://a%zz",
            "https://a:99999",
            "https://a..b",
            "https://a:",
            "https://:8080",
        ] {
            assert!(text.parse::<ApiUrl>().is_err(), "{text:?}");
        }
    }
}
