//! Time, passed in.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// What time it is.
pub trait Clock: Send + Sync {
    /// By the calendar, for the log of changes; in whole microseconds, which is what stores keep.
    fn now(&self) -> Timestamp;

    /// By a clock that never jumps, for measuring; counted from some fixed moment.
    fn uptime(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts counting.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where time is taken from")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where time is taken from")]
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn uptime(&self) -> Duration {
        self.start.elapsed()
    }
}
