//! The URL under which clusters call the API.

use std::{fmt, str::FromStr};

use http::Uri;

/// A base URL that can be put into manifests: a scheme, a host, perhaps a port and a path, and nothing that a template, a
/// substitution or a query could take for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiUrl(String);

/// Why a text is not such a URL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "\"{0}\" is not a URL such as https://fleet.example.com: a scheme (https or http), a host, perhaps a port and a path"
)]
pub struct InvalidApiUrl(String);

impl ApiUrl {
    /// The one in examples.
    pub(crate) fn example() -> Self {
        Self("https://internal-api.internal.example.com".to_owned())
    }

    /// Whether what is sent there can be read on the way.
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
        let good =
            scheme.is_some_and(|rest| rest.chars().all(allowed)) && trimmed.parse().is_ok_and(|uri| is_good(&uri));
        if good { Ok(Self(trimmed.to_owned())) } else { Err(InvalidApiUrl(text.to_owned())) }
    }
}

fn is_good(uri: &Uri) -> bool {
    let Some(authority) = uri.authority() else { return false };
    let named = |host: &str| host.split('.').all(|label| !label.is_empty());
    // What is behind the host is a port, or the parser has let something else pass.
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
    fn a_url_is_taken_without_its_last_slash() {
        for (text, kept) in [
            ("https://fleet.example.com", "https://fleet.example.com"),
            ("https://fleet.example.com/", "https://fleet.example.com"),
            (
                "http://flux-api-read.flux-system.svc.cluster.local:8080",
                "http://flux-api-read.flux-system.svc.cluster.local:8080",
            ),
            ("https://[2001:db8::1]:8443/fleet/", "https://[2001:db8::1]:8443/fleet"),
        ] {
            assert_eq!(text.parse::<ApiUrl>().unwrap().to_string(), kept);
        }
    }

    #[test]
    fn what_could_be_taken_for_something_else_is_refused() {
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
