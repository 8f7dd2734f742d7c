//! The machine: its cores, what is installed on it, and what its processes take.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

/// Time that the kernel counts in; on Linux it is this for every program.
const TICK: Duration = Duration::from_millis(10);

/// The cores on which things run.
pub(crate) struct Machine {
    cores: Vec<usize>,
}

/// A core for one of the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Core {
    /// For whoever is measured.
    Measured,
    /// For whoever asks.
    Load,
    /// The system puts it where it likes.
    Any,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let cores: Vec<_> = list(field(&status, "Cpus_allowed_list:"));
        if cores.len() < 2 {
            eprintln!("bench: there is one core; whoever asks takes from whoever is measured, and nothing is pinned");
        }
        Self { cores }
    }

    /// A program that ends when this one does, on its core.
    pub(crate) fn command(&self, core: Core, signal: &str, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", signal]);
        let place = match core {
            Core::Measured => self.cores.first(),
            Core::Load => self.cores.get(1),
            Core::Any => None,
        };
        if let Some(core) = place.filter(|_| self.cores.len() > 1) {
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

/// Versions of what takes part.
pub(crate) fn versions() -> Value {
    json!({
        "flux-resourceset": said(&server(), &["--version"]),
        "nginx": said("nginx", &["-v"]),
        "wrk": said("wrk", &["-v"]),
        "sqlite3": said("sqlite3", &["--version"]),
    })
}

/// The first line of what a program says, however it ends.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

/// Where builds are, which is more likely a disk than /tmp is.
pub(crate) fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// The server: beside this program.
pub(crate) fn server() -> String {
    std::env::current_exe().unwrap().with_file_name("flux-resourceset").into_os_string().into_string().unwrap()
}

/// What a process and those it has started have computed so far.
pub(crate) fn computed(pid: u32) -> Duration {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let own = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name is in brackets and may have spaces.
    let fields: Vec<_> = own.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    TICK * ticks + children.split_ascii_whitespace().map(|child| computed(child.parse().unwrap())).sum::<Duration>()
}

/// What a process holds now and what it held at most, in MiB.
pub(crate) fn resident(pid: u32) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mebibytes = |name| number(field(&status, name)) as f64 / 1024.0;
    (mebibytes("VmRSS:"), mebibytes("VmHWM:"))
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
