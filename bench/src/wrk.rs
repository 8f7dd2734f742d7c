//! Polls as fast as they are answered, by wrk: one thread, 32 connections. Whatever is not answered with 200 ends the
//! benchmark, for a figure with failures in it is none.

use std::{fmt, fs, path::Path, process::Command};

use harness::READ;

use crate::{
    machine::{Core, Machine},
    watch::{Watch, Watched},
};

const SCRIPT: &str = include_str!("polls.lua");
const CONNECTIONS: u32 = 32;
const PAUSE_MS: u32 = 1;
/// Lines of a log that are told after a failure.
const LOGGED: usize = 20;

/// How polls are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// The path of a resource type.
    pub(crate) kind: &'static str,
    /// Whether connections are kept. Flux Operator makes one for every poll.
    pub(crate) kept: bool,
    /// Whether gzip is asked for. Flux Operator asks.
    pub(crate) gzip: bool,
    /// Whether a connection pauses after each answer, so that nobody is full.
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
pub(crate) enum Order {
    Random(u64),
    /// One cluster after the other, from a place on.
    InTurn(usize),
}

/// Who is asked, and for whom.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) address: &'a str,
    pub(crate) pid: u32,
    /// A file with the DNS names of clusters, one in a line.
    pub(crate) names: &'a Path,
    /// What it has logged.
    pub(crate) log: &'a Path,
}

/// What came of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Microseconds that whoever was asked computed for a poll.
    pub(crate) computed_us: f64,
    /// The share of its core that this was.
    pub(crate) busy: f64,
    /// The share of the other core that wrk took. Near 1 while the first is not, the load was what ran out.
    pub(crate) load: f64,
    /// The share of a core that neither of the two took.
    pub(crate) others: f64,
    /// Bytes of an answer with its head.
    pub(crate) bytes: f64,
}

pub(crate) fn run(machine: &Machine, target: Target<'_>, manner: Manner, order: Order, seconds: u32) -> Outcome {
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
        Order::Random(seed) => command.args(["random", &seed.to_string()]),
        Order::InTurn(place) => command.args(["in-turn", &place.to_string()]),
    };
    if manner.paused {
        command.arg(PAUSE_MS.to_string());
    }
    let watch = Watch::start(machine, target.pid);
    let said = said(&mut command);
    read(&said, &watch.end()).unwrap_or_else(|| {
        let log = fs::read_to_string(target.log).unwrap_or_default();
        panic!("{manner}: {said}\n{}", log.lines().take(LOGGED).collect::<Vec<_>>().join("\n"))
    })
}

/// What the polls of a cluster carry, with bars for the ends of lines.
fn headers(address: &str, manner: Manner) -> String {
    let gzip = if manner.gzip { "Accept-Encoding: gzip|" } else { "" };
    let close = if manner.kept { "" } else { "Connection: close|" };
    format!("Host: {address}|User-Agent: Go-http-client/1.1|Authorization: Bearer {READ}|{gzip}{close}")
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Reads the line of the script; nothing, where a poll failed.
fn read(said: &str, watched: &Watched) -> Option<Outcome> {
    let line = said.lines().find_map(|line| line.strip_prefix("polls "))?;
    let figures: Vec<f64> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let [requests, microseconds, bytes, connect, read, write, status, timeout, p50, p99] = figures[..] else {
        return None;
    };
    let failures = connect + read + write + status + timeout;
    let (seconds, computed) = (microseconds / 1e6, watched.computed.as_secs_f64());
    (failures == 0.0 && requests > 0.0).then(|| Outcome {
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
