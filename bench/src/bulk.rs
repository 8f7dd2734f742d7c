//! Polls during patches of all clusters, compared with the same polls without patches. The server has all cores, and clusters
//! poll at a steady rate below its limit.

use std::{
    fmt::Write as _,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::{Spread, rounded},
    fleet::{SeededRandom, TYPES, cluster_dns, poll},
    machine::Core,
    pace::{self, Paced},
    report::{Section, TargetCheck},
    writes,
};

const PATHS: usize = 3_000;

struct Bulk {
    size: usize,
    quiet: Side,
    patched: Side,
    patches: usize,
    patch_ms: Spread,
}

/// The polls without or with patches.
struct Side {
    p50_ms: Spread,
    p99_ms: Spread,
    longest_ms: Spread,
    /// How late this program itself sent polls, p99.
    late_p99_ms: Spread,
    per_second: Spread,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let size = bench.plan.main;
    let fleet = bench.fleets.iter().find(|fleet| fleet.size == size).unwrap();
    let (server, _folder) = fleet.serve_changes(&bench.machine, Core::Any);
    let time = Duration::from_secs(if bench.plan.smoke { 1 } else { 4 });
    let mut random = SeededRandom::new(1);
    let paths: Vec<_> =
        (0..PATHS).map(|turn| poll(&cluster_dns(random.below(size)), TYPES[turn % TYPES.len()])).collect();
    let mut connection = server.connect();
    let (mut quiet, mut patched, mut patch_ms) = (Vec::new(), Vec::new(), Vec::new());
    pace::during(&server.address, &paths, || thread::sleep(time / 4));
    for _ in 0..bench.plan.repetitions {
        quiet.push(pace::during(&server.address, &paths, || thread::sleep(time)));
        patched.push(pace::during(&server.address, &paths, || {
            let start = Instant::now();
            while start.elapsed() < time {
                patch_ms.push(writes::bulk(&mut connection, size, patch_ms.len()));
            }
        }));
    }
    Box::new(Bulk {
        size,
        quiet: Side::new(&quiet),
        patched: Side::new(&patched),
        patches: patch_ms.len(),
        patch_ms: Spread::new(patch_ms),
    })
}

impl Side {
    fn new(times: &[Paced]) -> Self {
        let spread = |figure: fn(&Paced) -> f64| Spread::new(times.iter().map(figure));
        Self {
            p50_ms: spread(|paced| paced.latency.median()),
            p99_ms: spread(|paced| paced.latency.p99()),
            longest_ms: spread(|paced| paced.latency.permille(1_000)),
            late_p99_ms: spread(|paced| paced.late.p99()),
            per_second: spread(|paced| paced.per_second),
        }
    }

    fn json(&self) -> Value {
        json!({
            "p50_ms": self.p50_ms.json(),
            "p99_ms": self.p99_ms.json(),
            "longest_ms": self.longest_ms.json(),
            "own_lateness_p99_ms": self.late_p99_ms.json(),
            "polls_per_second": self.per_second.json(),
        })
    }
}

impl Bulk {
    fn ratio(&self) -> f64 {
        self.patched.p99_ms.median / self.quiet.p99_ms.median
    }
}

impl Section for Bulk {
    fn table(&self) -> String {
        let mut table = format!(
            "Polls of {} clusters at a steady rate, while all clusters are patched again and again (ms)\n\n",
            self.size
        );
        let heads = ["", "polls/s", "p50", "p99", "longest", "late by this program, p99"];
        let [name, rate, p50, p99, longest, late] = heads;
        writeln!(table, "{name:<34} {rate:>8} {p50:>8} {p99:>24} {longest:>8} {late:>27}").unwrap();
        let patched = format!("during {} patches of {:.0} ms", self.patches, self.patch_ms.median);
        for (name, side) in [("quiet", &self.quiet), (&patched, &self.patched)] {
            let p99 = format!("{:.2} ({:.2}-{:.2})", side.p99_ms.median, side.p99_ms.min, side.p99_ms.max);
            writeln!(
                table,
                "{name:<34} {:>8.0} {:>8.2} {p99:>24} {:>8.2} {:>27.2}",
                side.per_second.median, side.p50_ms.median, side.longest_ms.median, side.late_p99_ms.median
            )
            .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "quiet": self.quiet.json(),
            "during_patches": self.patched.json(),
            "patches": self.patches,
            "patch_ms": self.patch_ms.json(),
            "p99_ratio": rounded(self.ratio()),
        })
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        let what = format!("p99 of polls during patches of all {} clusters, compared with none", self.size);
        vec![TargetCheck::at_most(what, self.ratio(), 3.0, "x")]
    }
}
