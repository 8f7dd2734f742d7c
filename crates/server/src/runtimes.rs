//! Threads for polls, for changes, and for other reads: whoever is busy with one sort of requests never keeps another waiting.
//!
//! Polls are answered by the runtime on which the program runs. A connection that asks for anything else goes over to `others`,
//! where changes are made. What is only read is computed by `readers`, whose threads have a lower priority: on a machine without a
//! free core, a read waits for a change and not the other way round.

use std::{num::NonZero, thread};

use tokio::runtime::{Builder, Handle, Runtime};

/// How much the priority of a reader's thread is below that of others: as much as the system allows.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// How many threads may block or compute for long, and two for every core. More than all limits let in together, and far fewer
/// than the runtime would start: each thread that reads keeps memory for the next time.
const BLOCKING: usize = 16;

/// After so many steps of tasks, a thread looks for what has come over the network. Each step may send 64 KiB of a large answer; at
/// the default of 61 a change waits for milliseconds before it is seen.
const LOOK_EVERY: u32 = 4;

/// The runtimes beside that of polls.
pub struct Runtimes {
    others: Runtime,
    readers: Runtime,
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
        let others = runtime("others").worker_threads(sending).event_interval(LOOK_EVERY).build()?;
        let readers = runtime("readers").on_thread_start(stand_back).build()?;
        Ok(Self { others, readers })
    }

    /// For connections that ask for anything but a poll.
    #[must_use]
    pub fn others(&self) -> Handle {
        self.others.handle().clone()
    }

    /// For what is only read.
    #[must_use]
    pub fn readers(&self) -> Handle {
        self.readers.handle().clone()
    }

    /// Ends them. Whatever was under way had its time.
    pub fn end(self) {
        self.others.shutdown_background();
        self.readers.shutdown_background();
    }
}

/// Lowers the priority of this thread.
#[cfg(target_os = "linux")]
fn stand_back() {
    // No process means this thread.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("readers have the priority of others: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn stand_back() {}
