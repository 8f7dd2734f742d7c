//! The order of version tags, as the platform's releases mean it.
//!
//! `SemVer` puts everything with a suffix before the release. Here a suffix that is a number is a hotfix of the release
//! and comes after it (`v1.0.0 < v1.0.0-1 < v1.0.0-2 < v1.1.0`), while one with letters is a candidate for the release
//! and comes before it (`v1.1.0-rc1 < v1.1.0`). What is no version (`latest`) comes last, in the order of its letters.

use std::{cmp::Ordering, fmt};

/// A tag that can be put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag(String);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Version(Vec<u64>, Stage<'a>),
    Word,
}

/// Where a build stands within its release.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage<'a> {
    Candidate(Vec<Part<'a>>),
    Release,
    Hotfix(u64),
}

/// A stretch of digits or of anything else.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Text(&'a str),
}

impl Tag {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn key(&self) -> Key<'_> {
        let text = self.0.strip_prefix('v').unwrap_or(&self.0);
        // What follows a plus says how it was built, and nothing about the order.
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (release, suffix) = text.split_once('-').map_or((text, None), |(release, suffix)| (release, Some(suffix)));
        let numbers: Option<Vec<u64>> = release.split('.').map(number).collect();
        match (numbers, suffix) {
            (Some(numbers), None) => Key::Version(numbers, Stage::Release),
            (Some(numbers), Some(suffix)) => match number(suffix) {
                Some(hotfix) => Key::Version(numbers, Stage::Hotfix(hotfix)),
                None => Key::Version(numbers, Stage::Candidate(parts(suffix))),
            },
            (None, _) => Key::Word,
        }
    }
}

fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `rc10` as `rc` and 10, so that it comes after `rc9`.
fn parts(suffix: &str) -> Vec<Part<'_>> {
    let part = |text| number(text).map_or(Part::Text(text), Part::Number);
    suffix.split('.').flat_map(stretches).map(part).collect()
}

/// Where digits begin or end, the text is cut.
fn stretches(mut text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(first) = text.chars().next() {
        let end = text.find(|c: char| c.is_ascii_digit() != first.is_ascii_digit()).unwrap_or(text.len());
        let (stretch, rest) = text.split_at(end);
        found.push(stretch);
        text = rest;
    }
    found
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for Tag {
    fn cmp(&self, other: &Self) -> Ordering {
        // Tags that mean the same (`v1.0.0`, `1.0.0`) still have an order of their own.
        self.key().cmp(&other.key()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Tag {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hotfixes_follow_their_release_and_candidates_precede_it() {
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
        let mut tags: Vec<_> = ordered.iter().rev().map(|&tag| Tag::new(tag)).collect();
        tags.sort();
        let sorted: Vec<_> = tags.iter().map(|Tag(tag)| tag.as_str()).collect();
        assert_eq!(sorted, ordered);
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "v?[0-9]{1,2}(\\.[0-9]){0,2}(-[a-z0-9.]{1,4})?|[a-z]{1,3}", b in "v?[0-9](-[a-z0-9.]{1,4})?", c in "[-a-z0-9.]{1,6}") {
            let mut tags = [Tag::new(a), Tag::new(b), Tag::new(c)];
            tags.sort();
            prop_assert!(tags[0] <= tags[1] && tags[1] <= tags[2] && tags[0] <= tags[2]);
            prop_assert_eq!(tags[0].cmp(&tags[2]), tags[2].cmp(&tags[0]).reverse());
        }
    }
}
