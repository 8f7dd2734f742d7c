//! What the kernel reports about a process, and how much memory it may take.

use std::{fs, io};

use crate::target::CheckResult;

/// The memory limit of a process, in MiB: the limit of a server in `deploy/`.
const MAX_MEMORY: u64 = 512;

/// The fields of `/proc/PID/status`.
pub(crate) struct ProcessStatus(String);

impl ProcessStatus {
    /// Fails if there is no such process.
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        fs::read_to_string(format!("/proc/{pid}/status")).map(Self)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    /// Whether the process has ended, and nothing but its exit code is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.field("State:").is_some_and(|state| state.starts_with('Z'))
    }

    /// Checks the most memory that the process has taken since its start, or since its peak was reset.
    pub(crate) fn check_peak(&self, subject: &str) -> CheckResult {
        let peak = self.field("VmHWM:").and_then(|peak| peak.strip_suffix(" kB")?.parse::<u64>().ok());
        match peak.map(|peak| peak / 1024) {
            Some(peak) if peak <= MAX_MEMORY => Ok(()),
            Some(peak) => Err(format!("{subject} took {peak} MiB, and may take {MAX_MEMORY}")),
            None => Err(format!("the kernel does not report how much memory {subject} takes")),
        }
    }
}

/// Resets the peak of this process to what it takes now. Before that it may have held a large answer.
pub(crate) fn reset_own_peak() -> CheckResult {
    fs::write("/proc/self/clear_refs", "5")
        .map_err(|error| format!("the peak of this process cannot be reset: {error}"))
}
