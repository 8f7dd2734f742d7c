//! Single writes and polls while many readers with a valid token request as much as they can, compared with the same writes and
//! polls without these readers; and the server's memory meanwhile.
//!
//! The threads that write and poll have a higher priority than the readers: on two cores, the readers' own work would otherwise
//! be measured as the server's.

use std::{
    fmt::Write as _,
    io::{self, Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use harness::READ;
use serde_json::{Value, json};

use crate::{
    Bench,
    figures::{Spread, Times, rounded},
    fleet::{SeededRandom, TYPES, cluster_dns, cluster_id, poll},
    http::HttpConnection,
    machine::{self, Core, resident},
    pace,
    report::{Section, TargetCheck},
    writes::{self, STRIDE},
};

const PATHS: usize = 3_000;

/// Between two writes.
const PAUSE: Duration = Duration::from_millis(20);

/// Between two bytes that a slow reader reads.
const TRICKLE: Duration = Duration::from_millis(100);

/// The read timeout of a reader.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What fast readers request, one request after the other, and how many readers do.
const LOOPS: [(&str, usize); 6] = [
    ("/namespaces?revision=1", 10),
    ("/clusters?revision=1", 4),
    ("/changes/2", 8),
    ("/changes?limit=1000", 4),
    ("/clusters", 8),
    ("/metrics", 50),
];

/// What slow readers request and read a byte at a time, and how many do.
const SLOW: [(&str, usize); 2] = [("/changes/stream?after=0", 40), ("/clusters", 20)];

struct Hostile {
    size: usize,
    quiet: Side,
    with_readers: Side,
    /// The peak of the server's memory.
    peak_mib: f64,
    /// Answers to readers: with 200, with 429, and the bytes of all.
    given: u64,
    refused: u64,
    bytes: u64,
}

/// The writes and polls without or with readers, in milliseconds.
struct Side {
    write_p50: Spread,
    write_p99: Spread,
    poll_p50: Spread,
    poll_p99: Spread,
}

/// The times of one repetition.
struct Turn {
    writes: Times,
    polls: Times,
}

#[derive(Default)]
struct Readers {
    over: AtomicBool,
    given: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let size = bench.plan.main;
    let fleet = bench.fleets.iter().find(|fleet| fleet.size == size).unwrap();
    let (server, _folder) = fleet.serve_changes(&bench.machine, Core::Any);
    let time = Duration::from_secs(if bench.plan.smoke { 2 } else { 6 });
    let mut random = SeededRandom::new(1);
    let paths: Vec<_> =
        (0..PATHS).map(|turn| poll(&cluster_dns(random.below(size)), TYPES[turn % TYPES.len()])).collect();
    let mut connection = server.connect();
    // The second change is one of the whole fleet, as is the third.
    for turn in 0..2 {
        writes::bulk(&mut connection, size, turn);
    }
    let mut turn = 0;
    let mut measure = || measure(&mut connection, &server.address, &paths, size, time, &mut turn);
    measure();
    let (mut quiet, mut hostile) = (Vec::new(), Vec::new());
    let readers = Readers::default();
    for _ in 0..bench.plan.repetitions.min(3) {
        quiet.push(measure());
        readers.over.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            let address = &*server.address;
            for (path, count) in LOOPS {
                (0..count).for_each(|_| drop(scope.spawn(|| readers.request_repeatedly(address, path))));
            }
            for (path, count) in SLOW {
                (0..count).for_each(|_| drop(scope.spawn(|| readers.trickle(address, path))));
            }
            thread::sleep(Duration::from_secs(1));
            hostile.push(measure());
            readers.over.store(true, Ordering::Relaxed);
        });
    }
    let (_, peak_mib) = resident(server.pid());
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Box::new(Hostile {
        size,
        quiet: Side::new(&quiet),
        with_readers: Side::new(&hostile),
        peak_mib,
        given: count(&readers.given),
        refused: count(&readers.refused),
        bytes: count(&readers.bytes),
    })
}

/// Writes, one after another with pauses, while clusters poll at a steady rate.
fn measure(
    connection: &mut HttpConnection,
    address: &str,
    paths: &[String],
    size: usize,
    time: Duration,
    turn: &mut usize,
) -> Turn {
    let mut writes = Vec::new();
    let polls = pace::during(address, paths, || {
        // The writer stands for another machine, so it must not wait for the readers.
        thread::scope(|scope| {
            let writer = || {
                machine::raise_thread_priority();
                let start = Instant::now();
                while start.elapsed() < time {
                    *turn += 1;
                    let path = format!("/clusters/{}", cluster_id(*turn * STRIDE % size));
                    let begin = Instant::now();
                    connection.patch(&path, &writes::replicas(*turn)).unwrap().ok();
                    writes.push(begin.elapsed());
                    thread::sleep(PAUSE);
                }
            };
            scope.spawn(writer).join().unwrap();
        });
    });
    Turn { writes: Times::new(writes), polls: polls.latency }
}

impl Readers {
    /// Requests a path again and again, whatever the answer.
    fn request_repeatedly(&self, address: &str, path: &str) {
        machine::lower_thread_priority();
        let mut buffer = vec![0; 64 * 1024];
        while !self.is_over() {
            // The server may close a connection.
            let _ = self.request(address, path, &mut buffer, Duration::ZERO);
        }
    }

    /// Reads answers a byte at a time.
    fn trickle(&self, address: &str, path: &str) {
        machine::lower_thread_priority();
        while !self.is_over() {
            let _ = self.request(address, path, &mut [0], TRICKLE);
            thread::sleep(TRICKLE);
        }
    }

    fn request(&self, address: &str, path: &str, buffer: &mut [u8], pause: Duration) -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {READ}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        let mut status = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut status)?;
        match &status[9..] {
            b"200" => &self.given,
            b"429" => &self.refused,
            other => panic!("{path} was answered with {}", String::from_utf8_lossy(other)),
        }
        .fetch_add(1, Ordering::Relaxed);
        loop {
            let read = stream.read(buffer)?;
            if read == 0 || self.is_over() {
                return Ok(());
            }
            self.bytes.fetch_add(read as u64, Ordering::Relaxed);
            thread::sleep(pause);
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl Side {
    fn new(turns: &[Turn]) -> Self {
        let spread = |figure: fn(&Turn) -> f64| Spread::new(turns.iter().map(figure));
        Self {
            write_p50: spread(|turn| turn.writes.median()),
            write_p99: spread(|turn| turn.writes.p99()),
            poll_p50: spread(|turn| turn.polls.median()),
            poll_p99: spread(|turn| turn.polls.p99()),
        }
    }

    fn spreads(&self) -> [(&'static str, &Spread); 4] {
        [
            ("write_p50_ms", &self.write_p50),
            ("write_p99_ms", &self.write_p99),
            ("poll_p50_ms", &self.poll_p50),
            ("poll_p99_ms", &self.poll_p99),
        ]
    }

    fn json(&self) -> Value {
        self.spreads()
            .into_iter()
            .map(|(name, spread)| (name.to_owned(), spread.json()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

impl Hostile {
    /// The ratio of a time with readers to that without.
    fn ratio(&self, figure: fn(&Side) -> &Spread) -> f64 {
        figure(&self.with_readers).median / figure(&self.quiet).median
    }

    fn ratios(&self) -> [f64; 4] {
        [
            self.ratio(|side| &side.write_p50),
            self.ratio(|side| &side.write_p99),
            self.ratio(|side| &side.poll_p50),
            self.ratio(|side| &side.poll_p99),
        ]
    }
}

impl Section for Hostile {
    fn table(&self) -> String {
        let loops: usize = LOOPS.iter().chain(&SLOW).map(|(_, count)| count).sum();
        let mut table = format!(
            "Hostile readers: writes and polls of {} clusters, without and with {loops} readers (ms)\n\n",
            self.size
        );
        let [write, write_p99, poll, poll_p99] = ["write p50", "write p99", "poll p50", "poll p99"];
        writeln!(table, "{:<14} {write:>22} {write_p99:>22} {poll:>22} {poll_p99:>22}", "").unwrap();
        for (name, side) in [("quiet", &self.quiet), ("with readers", &self.with_readers)] {
            let cells = side.spreads().map(|(_, it)| format!("{:.2} ({:.2}-{:.2})", it.median, it.min, it.max));
            let [write, write_p99, poll, poll_p99] = cells;
            writeln!(table, "{name:<14} {write:>22} {write_p99:>22} {poll:>22} {poll_p99:>22}").unwrap();
        }
        let [write, write_p99, poll, poll_p99] = self.ratios().map(|ratio| format!("{ratio:.2} x"));
        writeln!(table, "{:<14} {write:>22} {write_p99:>22} {poll:>22} {poll_p99:>22}", "ratio").unwrap();
        let gibibytes = self.bytes as f64 / f64::from(1 << 30);
        let Self { given, refused, peak_mib, .. } = self;
        writeln!(table, "{given} answers of {gibibytes:.1} GiB were given to readers and {refused} refused; RSS was at most {peak_mib:.0} MiB").unwrap();
        table
    }

    fn json(&self) -> Value {
        let [write_p50, write_p99, poll_p50, poll_p99] = self.ratios().map(rounded);
        json!({
            "clusters": self.size,
            "quiet": self.quiet.json(),
            "with_readers": self.with_readers.json(),
            "ratios": {"write_p50": write_p50, "write_p99": write_p99, "poll_p50": poll_p50, "poll_p99": poll_p99},
            "peak_mib": rounded(self.peak_mib),
            "answers": self.given,
            "refused": self.refused,
            "bytes": self.bytes,
        })
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        let [write_p50, write_p99, _, poll_p99] = self.ratios();
        let of = |what: &str| format!("{what} with hostile readers at {} clusters, compared with none", self.size);
        vec![
            TargetCheck::at_most(of("p50 of writes"), write_p50, 3.0, "x"),
            TargetCheck::at_most(of("p99 of writes"), write_p99, 3.0, "x"),
            TargetCheck::at_most(of("p99 of polls"), poll_p99, 2.0, "x"),
            TargetCheck::at_most(
                format!("RSS with hostile readers at {} clusters", self.size),
                self.peak_mib,
                512.0,
                "MiB",
            ),
        ]
    }
}
