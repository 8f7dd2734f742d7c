//! Times that were taken, in order.

use std::time::Duration;

pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Self(times)
    }

    /// What so many of a thousand stay below.
    pub(crate) fn of_a_thousand(&self, share: usize) -> Duration {
        self.0[(self.0.len() * share / 1_000).min(self.0.len() - 1)]
    }

    pub(crate) fn median(&self) -> Duration {
        self.of_a_thousand(500)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.of_a_thousand(990)
    }
}

/// A line of a table: how long something takes, and how many times as long as the unit.
pub(crate) fn tell(what: &str, times: &Times, unit: Duration) {
    let ratio = |time: Duration| time.as_secs_f64() / unit.as_secs_f64();
    let (median, p99) = (times.median(), times.p99());
    println!(
        "{what:<58} {:>9.3} ms {:>7.1} x   {:>9.3} ms {:>7.1} x",
        median.as_secs_f64() * 1e3,
        ratio(median),
        p99.as_secs_f64() * 1e3,
        ratio(p99)
    );
}
