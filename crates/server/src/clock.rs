//! The clocks, passed in as a value so that tests can control time.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A wall clock and a monotonic clock.
pub trait Clock: Send + Sync {
    /// The wall clock, for the change log; in whole microseconds, which is what stores save.
    fn now(&self) -> Timestamp;

    /// The monotonic clock, for measuring; counted from a fixed moment.
    fn uptime(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts the monotonic clock.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn uptime(&self) -> Duration {
        self.start.elapsed()
    }
}
