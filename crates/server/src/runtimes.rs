//! Threads for polls, for changes, and for other reads: requests of one kind never keep requests of another kind waiting.
//!
//! Polls are answered by the runtime on which the program runs. Connections that begin with anything else, and all changes,
//! are served by the API runtime. What is only read is computed by the reader runtime, whose threads have a lower priority: on
//! a machine without a free core, a read waits for a change and not the other way round.

use std::{num::NonZero, thread};

use tokio::runtime::{Builder, Handle, Runtime};

/// How much lower the priority of a reader's thread is: as much as the system allows.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// How many threads of a runtime may block or compute for long, and two more for every core: more than all limits admit
/// together, and far fewer than the default of 512. Each thread that reads keeps memory for its next read.
const BLOCKING: usize = 16;

/// After so many task steps, a thread checks for new network events. A step may send 64 KiB of a large answer; with the default
/// of 61 steps it takes milliseconds until a change is noticed.
const EVENT_INTERVAL: u32 = 4;

/// Owns the threads of the API runtime and of the reader runtime.
pub struct Runtimes {
    api: Runtime,
    readers: Runtime,
}

/// Where tasks of the API runtime and of the reader runtime are started.
#[derive(Clone)]
pub struct RuntimeHandles {
    /// For changes, probes, and connections that begin with anything but a poll.
    pub api: Handle,
    /// For reads that are computed.
    pub readers: Handle,
}

impl Runtimes {
    /// Starts their threads.
    pub fn start() -> std::io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let runtime = |name: &str| {
            let mut runtime = Builder::new_multi_thread();
            runtime.thread_name(name).max_blocking_threads(BLOCKING + 2 * cores).enable_all();
            runtime
        };
        // Large answers are sent by these threads: they may keep all cores busy but one, which is left to polls.
        let sending = cores.saturating_sub(1).max(1);
        let api = runtime("api").worker_threads(sending).event_interval(EVENT_INTERVAL).build()?;
        let readers = runtime("readers").on_thread_start(lower_priority).build()?;
        Ok(Self { api, readers })
    }

    /// Handles to both.
    #[must_use]
    pub fn handles(&self) -> RuntimeHandles {
        RuntimeHandles { api: self.api.handle().clone(), readers: self.readers.handle().clone() }
    }

    /// Ends them without waiting: requests that were under way have had their time.
    pub fn shut_down(self) {
        self.api.shutdown_background();
        self.readers.shutdown_background();
    }
}

/// Lowers the priority of this thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // No process id means this thread.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("reader threads keep the normal priority: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
