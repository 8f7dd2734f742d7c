//! The list of clusters itself, for a controller that provisions them: the whole of it, or a part.
//!
//! A fleet of thousands of clusters is larger than one answer that Flux reads. So the list can be cut by environment, by labels
//! and into shards. An answer is complete for its part, or it is refused. An empty part is no empty list: a request
//! with a misspelt label, or for a shard in which no cluster ever was, gets an error. That a part has become empty, because
//! all of its clusters were decommissioned, is expressed only by the explicit record.

use std::{num::ParseIntError, str::FromStr};

use model::{Document, Id, ResourceType, Value};
use sha2::{Digest as _, Sha256};

use crate::{Answer, Definition, Empty, Refusal, Snapshot, SnapshotError, answer::AnswerBuilder, catalogue::Catalogue};

/// The most shards.
pub const MAX_SHARDS: u32 = 1_000;

/// One of several parts of the fleet, by the ids of clusters: `2/4` is the second of four.
///
/// A cluster is in shard `1 + h mod n` of n, where h is the number that the first eight bytes of the SHA-256 of its id are, the
/// most significant first. This must never change: clusters would move between the lists of the controllers that provision them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

/// A text that is no shard.
#[derive(Debug, thiserror::Error)]
#[error("a shard is i/n, the i-th of n parts, where i is from 1 to n and n is at most {MAX_SHARDS}")]
pub struct InvalidShard;

impl From<ParseIntError> for InvalidShard {
    fn from(_: ParseIntError) -> Self {
        Self
    }
}

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let (number, of) = text.split_once('/').ok_or(InvalidShard)?;
        let is_plain = [number, of].iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let (number, of) = (number.parse()?, of.parse()?);
        let is_in_range = (1..=of).contains(&number) && of <= MAX_SHARDS;
        if is_plain && is_in_range { Ok(Self { number, of }) } else { Err(InvalidShard) }
    }
}

impl Shard {
    /// Whether the cluster of an id is in it.
    fn has(self, id: &Id) -> bool {
        let digest: [u8; 32] = Sha256::digest(id.as_str().as_bytes()).into();
        let number = digest[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % u64::from(self.of) + 1 == u64::from(self.number)
    }
}

/// Which part of the list of clusters is wanted; the whole list, if nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Only clusters of this environment.
    pub environment: Option<String>,
    /// Only clusters that have all of these labels.
    pub labels: Vec<(String, String)>,
    /// Only clusters of this shard.
    pub shard: Option<Shard>,
}

impl Part {
    fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a cluster leaves it only by being decommissioned. An environment or a label can change while it runs.
    fn is_left_only_by_decommission(&self) -> bool {
        self.environment.is_none() && self.labels.is_empty()
    }

    fn has(&self, document: &Document) -> Result<bool, SnapshotError> {
        if self.shard.is_some_and(|shard| !shard.has(&document.id)) {
            return Ok(false);
        }
        if self.is_left_only_by_decommission() {
            return Ok(true);
        }
        let fields = document.body.fields();
        let fields = fields.map_err(|error| SnapshotError::unreadable(document, error.to_string()))?;
        let is = |value: Option<&Value>, text: &str| value.and_then(Value::as_str) == Some(text);
        let label = |key: &str| fields.get("labels").and_then(|labels| labels.get(key));
        Ok(self.environment.iter().all(|environment| is(fields.get("environment"), environment))
            && self.labels.iter().all(|(key, value)| is(label(key), value)))
    }
}

impl Snapshot {
    /// The live clusters of a part of the fleet as inputs, in the order of their ids.
    pub fn cluster_inputs(&self, ty: &ResourceType, part: &Part, empty: Empty) -> Result<Answer, Refusal> {
        if !self.types().serves(ty.position) {
            return Err(Refusal::TypesChanged(ty.kind.clone()));
        }
        if self.clusters().next().is_none() {
            return Err(Refusal::BlankFleet);
        }
        let defaults = self.catalogue(ty).map_or(&[][..], Catalogue::defaults);
        let mut list = AnswerBuilder::with_capacity(0);
        let mut was_decommissioned = false;
        for cluster in self.clusters() {
            if !part.has(&cluster.document)? {
                continue;
            }
            if !cluster.is_live() {
                was_decommissioned = true;
                continue;
            }
            // A cluster is a definition too: of itself.
            let itself = Definition::read(cluster.document.clone(), ty, defaults)?;
            list.push(|text| {
                text.push_str(&itself.plain);
                text.push('}');
            });
            // What is too large already need not be finished.
            if list.is_too_large() {
                return Err(Refusal::TooManyClusters(self.shards_for(list.count(), part)));
            }
        }
        match (list.count(), empty) {
            (0, _) if part.is_whole() => {}
            (0, _) if !was_decommissioned => return Err(Refusal::NoMatchingCluster),
            (0, Empty::Explicit) if part.is_left_only_by_decommission() => {}
            (0, _) => return Err(Refusal::NoClusterInForce),
            _ => {}
        }
        list.seal(empty, "}")
    }

    /// Into how many shards the list is to be cut, if one answer has room for so many clusters: with some to spare.
    fn shards_for(&self, room: usize, part: &Part) -> u32 {
        let clusters = self.clusters().filter(|cluster| cluster.is_live()).count();
        let shards = u32::try_from(clusters / room.max(1) + 2).unwrap_or(MAX_SHARDS);
        shards.max(part.shard.map_or(0, |shard| shard.of * 2)).min(MAX_SHARDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_a_number_from_one_to_at_most_a_thousand() {
        for text in ["1/1", "4/4", "1000/1000"] {
            assert!(text.parse::<Shard>().is_ok(), "{text}");
        }
        for text in [
            "",
            "1",
            "0/4",
            "5/4",
            "1/0",
            "0/0",
            "-1/4",
            "+1/4",
            "1/+4",
            " 1/4",
            "1/4/2",
            "1/1001",
            "a/b",
            "1/99999999999",
        ] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_shard_of_a_cluster_never_changes() {
        // printf c00000 | sha256sum | cut -c 1-16
        let shards = |id: &str| {
            let id = Id::parse(id).unwrap();
            let is_in = |number: &u32| Shard { number: *number, of: 7 }.has(&id);
            (1..=7).filter(is_in).collect::<Vec<_>>()
        };
        assert_eq!(["c00000", "demo-cluster-01"].map(shards), [vec![1], vec![1]]);
    }
}
