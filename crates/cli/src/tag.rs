//! The order of version tags of platform releases.
//!
//! `SemVer` puts every version with a suffix before the release. Here a numeric suffix is a hotfix of the release and
//! comes after it (`v1.0.0 < v1.0.0-1 < v1.0.0-2 < v1.1.0`), and any other suffix is a release candidate and comes
//! before it (`v1.1.0-rc1 < v1.1.0`). A tag that is not a version (`latest`) comes last, in alphabetical order.

use std::{cmp::Ordering, fmt};

/// A tag with this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionTag(String);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TagKey<'a> {
    Version(Vec<u64>, ReleaseStage<'a>),
    Word,
}

/// The position of a build within its release.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReleaseStage<'a> {
    Candidate(Vec<SuffixPart<'a>>),
    Release,
    Hotfix(u64),
}

/// A run of digits, or of other characters.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SuffixPart<'a> {
    Number(u64),
    Text(&'a str),
}

impl VersionTag {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn key(&self) -> TagKey<'_> {
        let text = self.0.strip_prefix('v').unwrap_or(&self.0);
        // Build metadata after a plus does not affect the order.
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (release, suffix) = text.split_once('-').map_or((text, None), |(release, suffix)| (release, Some(suffix)));
        let numbers: Option<Vec<u64>> = release.split('.').map(number).collect();
        match (numbers, suffix) {
            (Some(numbers), None) => TagKey::Version(numbers, ReleaseStage::Release),
            (Some(numbers), Some(suffix)) => match number(suffix) {
                Some(hotfix) => TagKey::Version(numbers, ReleaseStage::Hotfix(hotfix)),
                None => TagKey::Version(numbers, ReleaseStage::Candidate(parts(suffix))),
            },
            (None, _) => TagKey::Word,
        }
    }
}

fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `rc10` as `rc` and 10, so that it comes after `rc9`.
fn parts(suffix: &str) -> Vec<SuffixPart<'_>> {
    let part = |text| number(text).map_or(SuffixPart::Text(text), SuffixPart::Number);
    suffix.split('.').flat_map(runs).map(part).collect()
}

/// Splits the text where digits begin or end.
fn runs(mut text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(first) = text.chars().next() {
        let end = text.find(|c: char| c.is_ascii_digit() != first.is_ascii_digit()).unwrap_or(text.len());
        let (run, rest) = text.split_at(end);
        found.push(run);
        text = rest;
    }
    found
}

impl fmt::Display for VersionTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for VersionTag {
    fn cmp(&self, other: &Self) -> Ordering {
        // Tags of the same version (`v1.0.0`, `1.0.0`) are ordered by their text, so that the order is total.
        self.key().cmp(&other.key()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for VersionTag {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hotfixes_come_after_their_release_and_candidates_before_it() {
        let ordered = [
            "v0.9.0",
            "v1.0.0-rc1",
            "v1.0.0-rc2",
            "v1.0.0-rc10",
            "v1.0.0",
            "v1.0.0-1",
            "v1.0.0-2",
            "v1.0.0-10",
            "v1.1.0-rc1",
            "v1.1.0",
            "v1.10.0",
            "2.0.0",
            "latest",
            "main",
        ];
        let mut tags: Vec<_> = ordered.iter().rev().map(|&tag| VersionTag::new(tag)).collect();
        tags.sort();
        let sorted: Vec<_> = tags.iter().map(|VersionTag(tag)| tag.as_str()).collect();
        assert_eq!(sorted, ordered);
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "v?[0-9]{1,2}(\\.[0-9]){0,2}(-[a-z0-9.]{1,4})?|[a-z]{1,3}", b in "v?[0-9](-[a-z0-9.]{1,4})?", c in "[-a-z0-9.]{1,6}") {
            let mut tags = [VersionTag::new(a), VersionTag::new(b), VersionTag::new(c)];
            tags.sort();
            prop_assert!(tags[0] <= tags[1] && tags[1] <= tags[2] && tags[0] <= tags[2]);
            prop_assert_eq!(tags[0].cmp(&tags[2]), tags[2].cmp(&tags[0]).reverse());
        }
    }
}
