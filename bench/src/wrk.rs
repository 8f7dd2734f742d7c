//! Polls as fast as they are answered, by wrk: one thread, 32 connections. Any answer but 200 ends the benchmark, because a
//! figure with failures means nothing.

use std::{fmt, fs, path::Path, process::Command};

use harness::READ;

use crate::{
    machine::{Core, Machine},
    watch::{CpuTimes, Watch},
};

const SCRIPT: &str = include_str!("polls.lua");
const CONNECTIONS: u32 = 32;
const PAUSE_MS: u32 = 1;
/// Lines of a log that are printed after a failure.
const LOGGED: usize = 20;

/// How clusters poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// The path of a resource type.
    pub(crate) kind: &'static str,
    /// Whether connections are kept alive. Flux Operator opens one for every poll.
    pub(crate) kept: bool,
    /// Whether gzip is accepted. Flux Operator accepts it.
    pub(crate) gzip: bool,
    /// Whether a connection pauses after each answer, so that no core is full.
    pub(crate) paused: bool,
}

impl fmt::Display for Manner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = if self.kept { "kept-alive" } else { "one connection per poll" };
        let gzip = if self.gzip { "gzip" } else { "plain" };
        let paused = if self.paused { ", with pauses" } else { "" };
        write!(formatter, "{}, {kept}, {gzip}{paused}", self.kind)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum PollOrder {
    Random(u64),
    /// One cluster after the other, from an index on.
    InTurn(usize),
}

/// The server under load, and the clusters that poll.
#[derive(Clone, Copy)]
pub(crate) struct LoadTarget<'a> {
    pub(crate) address: &'a str,
    pub(crate) pid: u32,
    /// A file with the DNS names of clusters, one in a line.
    pub(crate) names: &'a Path,
    /// Its log file.
    pub(crate) log: &'a Path,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunResult {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Microseconds of processor time that the server took for a poll.
    pub(crate) computed_us: f64,
    /// The share of its core that this was.
    pub(crate) busy: f64,
    /// The share of the other core that wrk took. If it is near 1 and `busy` is not, wrk was the limit.
    pub(crate) load: f64,
    /// The share of a core that other processes took.
    pub(crate) others: f64,
    /// Bytes of an answer with its headers.
    pub(crate) bytes: f64,
}

pub(crate) fn run(
    machine: &Machine,
    target: LoadTarget<'_>,
    manner: Manner,
    order: PollOrder,
    seconds: u32,
) -> RunResult {
    let script = target.names.with_file_name("polls.lua");
    fs::write(&script, SCRIPT).unwrap();
    let mut command = machine.command(Core::Load, "KILL", "wrk");
    command
        .args(["--threads", "1", "--latency", "--timeout", "10s"])
        .args(["--connections", &CONNECTIONS.to_string(), "--duration", &format!("{seconds}s")])
        .arg("--script")
        .arg(&script)
        .arg(format!("http://{}", target.address))
        .arg("--")
        .arg(target.names)
        .args([manner.kind, &headers(target.address, manner)]);
    match order {
        PollOrder::Random(seed) => command.args(["random", &seed.to_string()]),
        PollOrder::InTurn(index) => command.args(["in-turn", &index.to_string()]),
    };
    if manner.paused {
        command.arg(PAUSE_MS.to_string());
    }
    let watch = Watch::start(machine, target.pid);
    let output = output_of(&mut command);
    read(&output, &watch.end()).unwrap_or_else(|| {
        let log = fs::read_to_string(target.log).unwrap_or_default();
        panic!("{manner}: {output}\n{}", log.lines().take(LOGGED).collect::<Vec<_>>().join("\n"))
    })
}

/// The headers of a poll, with bars for line breaks.
fn headers(address: &str, manner: Manner) -> String {
    let gzip = if manner.gzip { "Accept-Encoding: gzip|" } else { "" };
    let close = if manner.kept { "" } else { "Connection: close|" };
    format!("Host: {address}|User-Agent: Go-http-client/1.1|Authorization: Bearer {READ}|{gzip}{close}")
}

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Reads the line that the script prints; none if a poll failed.
fn read(output: &str, watched: &CpuTimes) -> Option<RunResult> {
    let line = output.lines().find_map(|line| line.strip_prefix("polls "))?;
    let figures: Vec<f64> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let [requests, microseconds, bytes, connect, read, write, status, timeout, p50, p99] = figures[..] else {
        return None;
    };
    let failures = connect + read + write + status + timeout;
    let (seconds, computed) = (microseconds / 1e6, watched.computed.as_secs_f64());
    (failures == 0.0 && requests > 0.0).then(|| RunResult {
        requests,
        per_second: requests / seconds,
        p50_ms: p50 / 1e3,
        p99_ms: p99 / 1e3,
        computed_us: computed / requests * 1e6,
        busy: computed / seconds,
        load: watched.load,
        others: watched.others,
        bytes: bytes / requests,
    })
}
