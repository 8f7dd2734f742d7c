//! Single writes, by one client and by several at once, compared with a bare loop that commits one row of the same size to a
//! SQLite file in the same folder, and with servers that do only a part of the work; and one patch of the whole fleet, compared
//! with as many single writes.

use std::{fs, path::Path, thread, time::Instant};

use rusqlite::Connection as Sqlite;
use serde_json::{Value, json};

use crate::{
    Bench, bare_servers,
    catalogue::{BASE, component_id},
    figures::{Spread, Times, grouped, milliseconds, rounded},
    fleet::cluster_id,
    http::HttpConnection,
    machine::Core,
    report::{Section, TargetCheck},
    rows::{self, TableRow},
    seeded::Seeded,
};

/// The distance between two written clusters, so that neighbours are not written one after the other.
pub(crate) const STRIDE: usize = 7_919;

/// How many clients write at once.
const WRITERS: usize = 8;

/// The first turn of the clients that write at once, and of the patches of all clusters. A value that was written before would be
/// no change.
const OTHERS: usize = 100_000;
const ALL: usize = 1_000_000;

struct Writes {
    size: usize,
    /// Bytes of a cluster's document.
    bytes: usize,
    per_second: Spread,
    /// The same with several clients at once.
    together_per_second: Spread,
    median_ms: f64,
    p99_ms: f64,
    bare_per_second: Spread,
    /// The same of the servers that commit a row, append a change, and review and append a change.
    parts_per_second: [Spread; 3],
    bulk_ms: Spread,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    rows::measure_all(bench, bench.fleets.iter(), measure)
}

/// A patch with another value each time: the replicas of a component that every cluster has.
pub(crate) fn replicas(turn: usize) -> String {
    json!({"patches": {component_id(BASE): {"replicaCount": (turn + 10).to_string()}}}).to_string()
}

fn measure(bench: &Bench, fleet: &Seeded) -> Writes {
    let writes = if bench.plan.smoke { 20 } else { 200 };
    let (server, folder) = fleet.serve_changes(&bench.machine, Core::Any);
    let mut connection = server.connect();
    let bytes = connection.get(&format!("/clusters/{}", cluster_id(0)), "").unwrap().ok().body.len();
    let bare = bare(&folder.path().join("bare.db"));
    let copy = |name: &str| {
        let file = folder.path().join(name);
        fs::copy(fleet.folder.join("fleet.db"), &file).unwrap();
        file
    };
    let mut parts = [
        bare_servers::committer(folder.path(), bytes),
        bare_servers::appender(&copy("appender.db")),
        bare_servers::reviewer(&copy("reviewer.db")),
    ];

    let mut others: Vec<_> = (0..WRITERS).map(|_| server.connect()).collect();
    let (mut per_second, mut together_per_second) = (Vec::new(), Vec::new());
    let (mut bare_per_second, mut parts_per_second) = (Vec::new(), <[Vec<_>; 3]>::default());
    let mut times = Vec::new();
    let warm_up = bench.plan.warm_up();
    for round in 0..warm_up + bench.plan.repetitions {
        let start = Instant::now();
        for turn in round * writes..(round + 1) * writes {
            let asked = Instant::now();
            single(&mut connection, fleet.size, turn);
            times.push(asked.elapsed());
        }
        per_second.push(writes as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        thread::scope(|scope| {
            for (writer, connection) in others.iter_mut().enumerate() {
                let turns = (0..writes).map(move |turn| OTHERS + (round * writes + turn) * WRITERS + writer);
                scope.spawn(move || turns.for_each(|turn| single(connection, fleet.size, turn)));
            }
        });
        together_per_second.push((writes * WRITERS) as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        commit(&bare, writes, bytes);
        bare_per_second.push(writes as f64 / start.elapsed().as_secs_f64());
        for (part, per_second) in parts.iter_mut().zip(&mut parts_per_second) {
            let start = Instant::now();
            (round * writes..(round + 1) * writes).for_each(|turn| single(part, fleet.size, turn));
            per_second.push(writes as f64 / start.elapsed().as_secs_f64());
        }
    }
    let bulk_ms =
        (0..bench.plan.bulk_repetitions(fleet.size)).map(|turn| bulk(&mut connection, fleet.size, ALL + turn));
    let bulk_ms = Spread::new(bulk_ms);
    let times = Times::new(times.split_off(warm_up * writes));
    let spread = |mut figures: Vec<_>| Spread::new(figures.split_off(warm_up));
    Writes {
        size: fleet.size,
        bytes,
        per_second: spread(per_second),
        together_per_second: spread(together_per_second),
        median_ms: times.median(),
        p99_ms: times.p99(),
        bare_per_second: spread(bare_per_second),
        parts_per_second: parts_per_second.map(spread),
        bulk_ms,
    }
}

/// Patches one cluster.
fn single(connection: &mut HttpConnection, size: usize, turn: usize) {
    let path = format!("/clusters/{}", cluster_id(turn * STRIDE % size));
    connection.patch(&path, &replicas(turn)).unwrap().ok();
}

/// Patches all clusters in one change; milliseconds until it is acknowledged.
pub(crate) fn bulk(connection: &mut HttpConnection, size: usize, turn: usize) -> f64 {
    let start = Instant::now();
    let answer = connection.patch("/clusters?all=true", &replicas(turn)).unwrap().ok();
    let taken = milliseconds(start.elapsed());
    let written: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(written["documents"].as_array().unwrap().len(), size, "the patch did not reach all clusters");
    taken
}

/// As durable as our change log: a commit is on the disk.
pub(crate) fn bare(file: &Path) -> Sqlite {
    let connection = Sqlite::open(file).unwrap();
    let statements = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE bare (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT";
    connection.execute_batch(statements).unwrap();
    connection
}

pub(crate) fn commit(connection: &Sqlite, times: usize, bytes: usize) {
    let body = "x".repeat(bytes);
    for _ in 0..times {
        connection.prepare_cached("INSERT INTO bare (body) VALUES (?)").unwrap().execute([&body]).unwrap();
    }
}

impl Writes {
    fn ratio(&self) -> f64 {
        self.per_second.median / self.bare_per_second.median
    }

    /// What one writer can come to: behind HTTP, with our log, and with our thoughts.
    fn limits(&self) -> [f64; 3] {
        self.parts_per_second.each_ref().map(|part| part.median / self.bare_per_second.median)
    }

    fn together_ratio(&self) -> f64 {
        self.together_per_second.median / self.bare_per_second.median
    }

    /// How many times as long as the patch of all clusters it takes to write them one by one.
    fn bulk_ratio(&self) -> f64 {
        self.size as f64 * self.median_ms / self.bulk_ms.median
    }
}

impl TableRow for Writes {
    const TITLE: &'static str = "\
Durable writes, compared with a bare SQLite loop that commits one row of the same size, and with servers that only commit,
append to our change log, or review and append; and a patch of all clusters";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        let heads = [
            "clusters",
            "bytes",
            "writes/s",
            "p50 ms",
            "p99 ms",
            "bare commits/s",
            "x",
            "commit",
            "append",
            "review",
            "eight at once",
            "x",
            "all, ms",
            "x one by one",
        ];
        let [
            clusters,
            bytes,
            rate,
            p50,
            p99,
            bare,
            ratio,
            commit,
            append,
            review,
            together,
            together_ratio,
            bulk,
            bulk_ratio,
        ] = heads;
        format!(
            "{clusters:>8} {bytes:>6} {rate:>21} {p50:>7} {p99:>7} {bare:>21} {ratio:>5} {commit:>6} {append:>6} {review:>6} {together:>21} {together_ratio:>5} {bulk:>25} {bulk_ratio:>12}"
        )
    }

    fn line(&self) -> String {
        let cell =
            |spread: &Spread| format!("{} ({}-{})", grouped(spread.median), grouped(spread.min), grouped(spread.max));
        let (rate, bare, bulk) = (cell(&self.per_second), cell(&self.bare_per_second), cell(&self.bulk_ms));
        let together = cell(&self.together_per_second);
        let Self { size, bytes, median_ms, p99_ms, .. } = self;
        let (ratio, together_ratio, bulk_ratio) = (self.ratio(), self.together_ratio(), self.bulk_ratio());
        let [commit, append, review] = self.limits();
        format!(
            "{size:>8} {bytes:>6} {rate:>21} {median_ms:>7.2} {p99_ms:>7.2} {bare:>21} {ratio:>5.2} {commit:>6.2} {append:>6.2} {review:>6.2} {together:>21} {together_ratio:>5.2} {bulk:>25} {bulk_ratio:>12.1}"
        )
    }

    fn json(&self) -> Value {
        let ([commits, appends, reviews], limits) = (&self.parts_per_second, self.limits().map(rounded));
        json!({
            "clusters": self.size,
            "document_bytes": self.bytes,
            "writes_per_second": self.per_second.json(),
            "write_p50_ms": rounded(self.median_ms),
            "write_p99_ms": rounded(self.p99_ms),
            "bare_commits_per_second": self.bare_per_second.json(),
            "ratio": rounded(self.ratio()),
            "servers_that_do_less": {
                "commits_per_second": commits.json(),
                "appends_per_second": appends.json(),
                "appends_after_a_thought_per_second": reviews.json(),
                "ratios": limits,
            },
            "writers_at_once": WRITERS,
            "writes_per_second_at_once": self.together_per_second.json(),
            "ratio_at_once": rounded(self.together_ratio()),
            "patch_of_all_ms": self.bulk_ms.json(),
            "one_by_one_ratio": rounded(self.bulk_ratio()),
        })
    }

    fn verdicts(&self, is_main: bool) -> Vec<TargetCheck> {
        if !is_main {
            return Vec::new();
        }
        let writes =
            format!("durable writes/s at {} clusters, one after another, compared with a bare SQLite loop", self.size);
        let together = format!("the same, {WRITERS} at once");
        let bulk = format!("a patch of {} clusters, as many times as fast as one by one", self.size);
        vec![
            TargetCheck::at_least(writes, self.ratio(), 0.5, "x"),
            TargetCheck::at_least(together, self.together_ratio(), 0.5, "x"),
            TargetCheck::at_least(bulk, self.bulk_ratio(), 100.0, "x"),
        ]
    }
}
