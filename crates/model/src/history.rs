//! Points in the history of a log, so that two histories can be distinguished.
//!
//! Every change has a digest of itself and of the digest before it. Two logs with the same digest have the same history up to it;
//! a log that lost its end, or was restored from an older copy, can reach the same revision again, but never the same digest.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{Change, Revision, Write};

/// The name of a change log: created with it, and kept wherever it is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, with = "Uuid")]
pub struct StoreId(Uuid);

impl From<Uuid> for StoreId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for StoreId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// How often an operator has accepted a history that differs from the served one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, with = "u64")]
pub struct Epoch(pub u64);

impl Epoch {
    /// Whether no other history has been accepted yet.
    #[must_use]
    pub fn is_first(&self) -> bool {
        *self == Self::default()
    }

    /// The epoch that overrules this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies a change and everything before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(inline, with = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Digest {
    type Error = InvalidDigest;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidDigest> {
        bytes.try_into().map(Self).map_err(|_| InvalidDigest)
    }
}

/// A value that is not 32 bytes or 64 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct InvalidDigest;

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(InvalidDigest);
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| InvalidDigest)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A point in the history of a change log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Which log.
    pub store: StoreId,
    /// The epoch.
    pub epoch: Epoch,
    /// The revision of the last change.
    pub revision: Revision,
    /// The digest of that change and of everything before it.
    pub digest: Digest,
}

impl Point {
    /// Before the first change of a log.
    #[must_use]
    pub fn beginning(store: StoreId) -> Self {
        let digest = Digest(Sha256::digest(store.0.as_bytes()).into());
        Self { store, epoch: Epoch::default(), revision: Revision::ZERO, digest }
    }

    /// The point after a change that follows this one.
    #[must_use]
    pub fn after(&self, change: &Change) -> Self {
        Self { store: self.store, epoch: change.epoch, revision: change.revision, digest: change.digest }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest.to_string();
        write!(f, "revision {} ({}, epoch {}, log {})", self.revision, &digest[..12], self.epoch, self.store)
    }
}

/// Computes the digest of a change.
pub(crate) fn digest(change: &Change) -> Digest {
    let mut digest = ChangeDigest::begin(change);
    change.writes.iter().for_each(|write| digest.add(write));
    digest.finish()
}

/// Computes the digest of a change whose writes come one after another. Every part is hashed with its length, so that different
/// changes never have the same input.
pub struct ChangeDigest(Sha256);

impl ChangeDigest {
    /// Begins with all fields except the writes.
    #[must_use]
    pub fn begin(change: &Change) -> Self {
        let mut digest = Self(Sha256::new());
        digest.part(change.parent.as_bytes());
        digest.part(&change.revision.0.to_be_bytes());
        digest.part(&change.epoch.0.to_be_bytes());
        digest.part(change.overrules.as_ref().map_or(&[], Digest::as_bytes));
        digest.part(&change.at.as_microsecond().to_be_bytes());
        digest.part(change.actor.as_bytes());
        for text in [&change.reason, &change.request_id] {
            digest.part(if text.is_some() { b"+" } else { b"-" });
            digest.part(text.as_deref().unwrap_or_default().as_bytes());
        }
        digest
    }

    /// Adds the next write.
    pub fn add(&mut self, write: &Write) {
        self.part(write.kind.as_str().as_bytes());
        self.part(write.id.as_str().as_bytes());
        self.part(write.op.name().as_bytes());
        self.part(write.op.body().map(crate::Body::text).unwrap_or_default().as_bytes());
    }

    /// The digest, after the last write.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Body, Id, Op, Origin};

    fn change(point: &Point, actor: &str, reason: Option<&str>, body: &str) -> Change {
        let origin = Origin {
            at: Timestamp::UNIX_EPOCH,
            actor: actor.to_owned(),
            reason: reason.map(ToOwned::to_owned),
            request_id: None,
        };
        let op = Op::Put(Body::from_text(body));
        Change::after(point, origin, vec![Write { kind: "namespace".into(), id: Id::parse("a").unwrap(), op }])
    }

    #[test]
    fn a_digest_identifies_a_change_and_all_before_it() {
        let beginning = Point::beginning(StoreId::default());
        let one = change(&beginning, "me", None, "{}");
        assert_eq!(one, change(&beginning, "me", None, "{}"));
        assert!(one.is_whole());
        let others = [
            change(&Point::beginning(Uuid::from_u128(1).into()), "me", None, "{}"),
            change(&beginning.after(&one), "me", None, "{}"),
            change(&beginning, "m", None, "{}"),
            change(&beginning, "me", Some(""), "{}"),
            change(&beginning, "me", None, "[]"),
        ];
        for other in others {
            assert_ne!(one.digest, other.digest, "{other:?}");
        }
        let changed = Change { actor: "you".to_owned(), ..one };
        assert!(!changed.is_whole());
    }

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = Point::beginning(StoreId::default()).digest;
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        for bad in ["", "0", &"x".repeat(64), &"ä".repeat(32), &"+1".repeat(32)] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
