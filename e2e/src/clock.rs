//! Waiting, with a limit.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

/// Longer than any wait should take, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(3);

#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn time(self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn seconds(self) -> f64 {
        self.time().as_secs_f64()
    }
}

/// Whether the process was asked to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends all waits on SIGTERM and SIGINT, so that all processes that were started are ended.
pub(crate) fn end_on_signals() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate()).unwrap();
            let mut interrupt = signal(SignalKind::interrupt()).unwrap();
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        ENDING.store(true, Ordering::Relaxed);
    });
}

/// Waits for a fixed time.
pub(crate) fn pass(time: Duration) {
    let watch = Stopwatch::start();
    while watch.time() < time {
        assert!(!ENDING.load(Ordering::Relaxed), "the run was asked to end");
        thread::sleep(Duration::from_millis(20).min(time));
    }
}

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, is: &mut dyn FnMut() -> bool) {
    let watch = Stopwatch::start();
    while !is() {
        assert!(watch.time() < TIMEOUT, "timeout after {} s: {what}", TIMEOUT.as_secs());
        pass(Duration::from_millis(50));
    }
}
