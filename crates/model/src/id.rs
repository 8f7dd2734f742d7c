//! Names and revisions: parsed once at the edge, typed inside.
//!
//! All names share their text (`Arc<str>`), because the same id is in definitions, references and indexes.

use std::{
    borrow::{Borrow, Cow},
    fmt,
    str::FromStr,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// The traits by which a newtype over shared text is a key and part of answers.
macro_rules! shared_text {
    ($name:ident) => {
        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

/// The singular name of a resource type, for example `platform_component`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(inline, with = "String")]
pub struct Kind(Arc<str>);
shared_text!(Kind);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
    }
}

impl From<&str> for Kind {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// The id of a document, unique within its kind.
///
/// This grammar holds for every type, because an id is part of URL paths and log lines. Types narrow it further by the `pattern`
/// of their `id`, for example to the names of Kubernetes namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(inline, with = "String")]
pub struct Id(Arc<str>);
shared_text!(Id);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A text that is not an id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidId {
    /// Empty, or more than [`Id::MAX_LEN`] bytes.
    #[error("an id has 1 to {max} characters", max = Id::MAX_LEN)]
    Length,
    /// A character that an id cannot hold.
    #[error("an id holds letters, digits, '-', '.', '_' and ':' and starts with a letter or a digit")]
    Characters,
    /// The id of the record that stands for "no inputs".
    #[error("the id \"{none}\" is reserved: it means that a cluster has no inputs", none = Id::NONE)]
    Reserved,
}

impl Id {
    /// The longest id: Kubernetes allows no longer name.
    pub const MAX_LEN: usize = 253;

    /// The id of the single record that an explicitly empty answer holds; no document may have it.
    pub const NONE: &str = "none";

    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(InvalidId::Length);
        }
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let holds = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        if !starts_well || !text.chars().all(holds) {
            return Err(InvalidId::Characters);
        }
        if text == Self::NONE {
            return Err(InvalidId::Reserved);
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::parse(text)
    }
}

/// The canonical spelling of a DNS name under which a cluster polls, which most have already: lower case, without a trailing dot.
/// This does not check that the text is a name, or that a cluster has it.
#[must_use]
pub fn dns_spelling(text: &str) -> Cow<'_, str> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_ascii_lowercase()) }
}

/// The number of a change, and of the state of the fleet after it. Zero is the log before its first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, with = "u64")]
pub struct Revision(pub u64);

impl Revision {
    /// The revision before the first change.
    pub const ZERO: Self = Self(0);

    /// The revision of the change that comes next.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_urls_and_kubernetes() {
        for good in ["cert-manager", "a", "0", "system:node-reader", "v1.2_3", "Admins"] {
            assert!(Id::parse(good).is_ok(), "{good}");
        }
        for bad in ["-a", "a/b", "a b", "ä", "a\n", ".."] {
            assert_eq!(Id::parse(bad), Err(InvalidId::Characters), "{bad:?}");
        }
        assert_eq!(Id::parse(""), Err(InvalidId::Length));
        assert_eq!(Id::parse(&"a".repeat(254)), Err(InvalidId::Length));
        assert_eq!(Id::parse("none"), Err(InvalidId::Reserved));
    }

    #[test]
    fn one_dns_name_has_one_spelling() {
        assert_eq!(dns_spelling("Demo.K8s.Example.COM."), "demo.k8s.example.com");
        assert_eq!(dns_spelling("demo.k8s.example.com"), "demo.k8s.example.com");
    }
}
