//! Waiting, and for how long.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

/// Longer than anything should take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_mins(3);

#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
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

/// Whether somebody wants the run to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Makes all waiting end when the process is told to, so that nothing that was started is left behind.
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

/// Lets time pass.
pub(crate) fn pass(time: Duration) {
    let watch = Stopwatch::start();
    while watch.time() < time {
        assert!(!ENDING.load(Ordering::Relaxed), "the run was told to end");
        thread::sleep(Duration::from_millis(20).min(time));
    }
}

/// Waits for something that must come.
pub(crate) fn eventually(what: &str, is: &mut dyn FnMut() -> bool) {
    let watch = Stopwatch::start();
    while !is() {
        assert!(watch.time() < PATIENCE, "it did not come to be within {} s that {what}", PATIENCE.as_secs());
        pass(Duration::from_millis(50));
    }
}
