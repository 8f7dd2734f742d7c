//! The machine: its cores, the installed programs, and what its processes use.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The cores on which things run.
pub(crate) struct Machine {
    cores: Vec<usize>,
}

/// A core for one of the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Core {
    /// For the server under test.
    Measured,
    /// For the load generator.
    Load,
    /// Not pinned.
    Any,
}

impl Machine {
    pub(crate) fn detect() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let cores: Vec<_> = list(field(&status, "Cpus_allowed_list:"));
        if cores.len() < 2 {
            eprintln!(
                "bench: there is only one core, so the load generator and the server share it, and nothing is pinned"
            );
        }
        Self { cores }
    }

    /// The number of a core; none if the machine has fewer than two.
    pub(crate) fn core(&self, core: Core) -> Option<usize> {
        match core {
            _ if self.cores.len() < 2 => None,
            Core::Measured => Some(self.cores[0]),
            Core::Load => Some(self.cores[1]),
            Core::Any => None,
        }
    }

    /// A program on its core. It gets a signal when this process ends.
    pub(crate) fn command(&self, core: Core, signal: &str, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", signal]);
        if let Some(core) = self.core(core) {
            command.args(["taskset", "--cpu-list", &core.to_string()]);
        }
        command.arg(program);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn json(&self) -> Value {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap();
        let processor = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let memory = fs::read_to_string("/proc/meminfo").unwrap();
        let kilobytes: u64 = number(field(&memory, "MemTotal:"));
        json!({
            "processor": processor.map(|(_, name)| name),
            "cores": self.cores.len(),
            "memory_mib": kilobytes / 1024,
            "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim(),
            "pinned": self.cores.len() > 1,
        })
    }
}

/// The date, and the versions of all programs involved.
pub(crate) fn versions() -> Value {
    json!({
        "date": first_line_of("date", &["--utc", "+%F"]),
        "flux-resourceset": first_line_of(&server(), &["--version"]),
        "nginx": first_line_of("nginx", &["-v"]),
        "wrk": first_line_of("wrk", &["-v"]),
        "sqlite3": first_line_of("sqlite3", &["--version"]),
        "valgrind": first_line_of("valgrind", &["--version"]),
    })
}

/// The first line that a program prints, whatever its exit code.
fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

/// Flushes what was written to the disks, so that this does not happen during a measurement.
pub(crate) fn settle() {
    assert!(Command::new("sync").status().unwrap().success(), "sync failed");
}

/// The target directory of cargo, which is more likely on a disk than /tmp is.
pub(crate) fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// A folder for this run. First removes folders of earlier runs that were killed.
pub(crate) fn folder() -> TempDir {
    for entry in fs::read_dir(target()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap_or_default();
        let owner = name.strip_prefix("bench-").and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let prefix = format!("bench-{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(target()).unwrap()
}

/// The server's binary, in the same folder as this one.
pub(crate) fn server() -> String {
    std::env::current_exe().unwrap().with_file_name("flux-resourceset").into_os_string().into_string().unwrap()
}

/// The resident memory of a process, now and at its peak, in MiB.
pub(crate) fn resident(pid: u32) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mebibytes = |name| number(field(&status, name)) as f64 / 1024.0;
    (mebibytes("VmRSS:"), mebibytes("VmHWM:"))
}

/// Gives this thread a real-time priority, where the system allows it.
pub(crate) fn raise_thread_priority() {
    let link = fs::read_link("/proc/thread-self").unwrap();
    let thread = link.file_name().unwrap();
    let _ = Command::new("chrt").args(["--rr", "--pid", "1"]).arg(thread).stderr(Stdio::null()).status();
}

/// Lets this thread run only when no other thread of the machine wants to.
pub(crate) fn lower_thread_priority() {
    let link = fs::read_link("/proc/thread-self").unwrap();
    let thread = link.file_name().unwrap();
    let changed = Command::new("chrt").args(["--idle", "--pid", "0"]).arg(thread).status().unwrap();
    assert!(changed.success(), "cannot change the priority of a thread");
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("there is no {name}")).trim()
}

fn number(text: &str) -> u64 {
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A list of the kernel, such as 0-3,7.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        from.parse::<usize>().unwrap()..=to.parse().unwrap()
    };
    text.split(',').flat_map(range).collect()
}
