//! How often a cluster polls.
//!
//! Providers have no jitter: clusters that started together would always poll together. So each gets an interval of its own, up
//! to a tenth shorter than configured and always the same for one cluster, and the polls of a fleet spread out over time.

use std::{fmt, str::FromStr};

/// The time between two polls, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(u32);

/// A text that is not such an interval.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{0}\" is not a time from 1s to 24h, such as 5m or 1h30m")]
pub struct InvalidInterval(String);

const DAY: u32 = 24 * 60 * 60;

impl Default for Interval {
    fn default() -> Self {
        Self(5 * 60)
    }
}

impl Interval {
    /// The interval of one cluster.
    #[must_use]
    pub fn for_cluster(self, dns: &str) -> Self {
        Self(self.0 - crc32fast::hash(dns.as_bytes()) % (self.0 / 10 + 1))
    }
}

impl FromStr for Interval {
    type Err = InvalidInterval;

    fn from_str(text: &str) -> Result<Self, InvalidInterval> {
        let invalid = || InvalidInterval(text.to_owned());
        let (mut seconds, mut rest) = (0, text);
        for (unit, unit_seconds) in [('h', 3600), ('m', 60), ('s', 1)] {
            let Some((number, after)) = rest.split_once(unit) else { continue };
            let number: u32 =
                number.parse().ok().filter(|_| number.starts_with(|c: char| c.is_ascii_digit())).ok_or_else(invalid)?;
            seconds =
                number.checked_mul(unit_seconds).and_then(|more| more.checked_add(seconds)).ok_or_else(invalid)?;
            rest = after;
        }
        if rest.is_empty() && (1..=DAY).contains(&seconds) { Ok(Self(seconds)) } else { Err(invalid()) }
    }
}

/// As Go, and so Flux, writes it.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.0 / 3600, 'h'), (self.0 / 60 % 60, 'm'), (self.0 % 60, 's')];
        parts.into_iter().filter(|(number, _)| *number > 0).try_for_each(|(number, unit)| write!(f, "{number}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn times_are_read_and_written_as_flux_does() {
        for (text, written) in [("5m", "5m"), ("90s", "1m30s"), ("1h30m", "1h30m"), ("24h", "24h"), ("1s", "1s")] {
            assert_eq!(text.parse::<Interval>().unwrap().to_string(), written);
        }
        for text in
            ["", "0s", "-5m", "+5m", "5", "25h", "1.5s", "500ms", "5m1h", "5 m", "PT5M", "h", "99999999999s", "soon"]
        {
            assert!(text.parse::<Interval>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn each_cluster_has_an_interval_of_its_own() {
        let configured = Interval::default();
        let times: BTreeSet<u32> =
            (0..1000).map(|at| configured.for_cluster(&format!("cluster-{at}.example.com")).0).collect();
        assert!(times.iter().all(|time| (270..=300).contains(time)), "{times:?}");
        assert!(times.len() > 25, "{times:?}");
        assert_eq!(configured.for_cluster("a.example.com"), configured.for_cluster("a.example.com"));
        assert_eq!(Interval(5).for_cluster("a.example.com"), Interval(5));
    }
}
