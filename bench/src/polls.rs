//! Polls on one core, compared with nginx that serves the same answers as files on the same core. Both are polled in turns, so
//! that other load on the machine affects both. So are servers of several sizes; but the main size is polled by itself, since
//! with other fleets in memory the kernel takes a core away for milliseconds, which makes a p99 random.

use std::{
    fmt::{self, Write as _},
    fs,
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::{
    Bench, chart,
    figures::{Spread, grouped, rounded},
    fleet::{TYPES, cluster_dns},
    machine::{self, Core},
    nginx::Nginx,
    plan::BenchPlan,
    report::{Section, TargetCheck},
    seeded::Seeded,
    server::Server,
    wrk::{self, LoadTarget, Manner, PollOrder, RunResult},
};

/// nginx gets at most so many clusters, evenly spread: files that are not requested do not make it slower.
const MOST_OF_NGINX: usize = 10_000;
const WARM_UP_SECONDS: u32 = 1;
/// A run counts as disturbed if other processes took this share of a core.
const DISTURBED: f64 = 0.1;
/// A core that is less busy than this did not limit the polls.
const BUSY: f64 = 0.9;

const ABOUT: &str = "\
Polls on one core, compared with nginx that serves the same answers as files on the same core

polls/s: median, least and most; x: ratio to nginx, measured right before or after, as the median of the repetitions; CPU:
processor time for a poll; core: the share of its core that this was; load: the share of the other core that wrk took; other:
the share of a core that other processes took, which disturbs the measurement.
Where core is below 90 %, the load generator or other processes were the limit, and the ratio of CPU is the one that counts.
p99 is measured under full load, except where it is calm: there connections pause, and no core is full.

";
const HEADS: &str = "clusters type                conn.                      polls/s                    nginx     x p50 ms  nginx p99 ms  nginx     x CPU us  nginx     x  core nginx  load nginx other nginx  bytes  nginx\n";

/// The results.
pub(crate) struct PollResults {
    pub(crate) rows: Vec<PollRow>,
    pub(crate) plan: BenchPlan,
}

/// The results for one fleet and one manner of polling.
pub(crate) struct PollRow {
    pub(crate) size: usize,
    pub(crate) manner: Manner,
    pub(crate) ours: ServerFigures,
    pub(crate) nginx: ServerFigures,
}

/// The figures of this server or of nginx.
pub(crate) struct ServerFigures {
    /// One for each repetition.
    outcomes: Vec<RunResult>,
    pub(crate) per_second: Spread,
    pub(crate) p50_ms: Spread,
    pub(crate) p99_ms: Spread,
    pub(crate) computed_us: Spread,
    pub(crate) busy: Spread,
    pub(crate) load: Spread,
    others: Spread,
    pub(crate) bytes: f64,
}

/// This server and nginx, with the same fleet.
struct Pair {
    size: usize,
    ours: Server,
    nginx: Nginx,
    all: PathBuf,
    sample: PathBuf,
}

impl Pair {
    fn start(bench: &Bench, fleet: &Seeded) -> Self {
        let names: Vec<_> = (0..fleet.size).map(cluster_dns).collect();
        let step = fleet.size.div_ceil(MOST_OF_NGINX);
        let sampled: Vec<_> = names.iter().step_by(step).cloned().collect();
        let (all, sample) = (fleet.folder.join("all"), fleet.folder.join("sample"));
        fs::write(&all, names.join("\n")).unwrap();
        fs::write(&sample, sampled.join("\n")).unwrap();
        let ours = fleet.serve(&bench.machine, Core::Measured);
        let nginx = Nginx::start(&bench.machine, &fleet.folder, &ours, &sampled);
        Self { size: fleet.size, ours, nginx, all, sample }
    }

    fn targets(&self) -> [LoadTarget<'_>; 2] {
        [
            LoadTarget { address: &self.ours.address, pid: self.ours.pid(), names: &self.all, log: &self.ours.log },
            LoadTarget {
                address: &self.nginx.address,
                pid: self.nginx.pid(),
                names: &self.sample,
                log: &self.nginx.log,
            },
        ]
    }
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let (main, others): (Vec<_>, Vec<_>) = bench.fleets.iter().partition(|fleet| fleet.size == bench.plan.main);
    let mut rows: Vec<_> = [main, others].into_iter().flat_map(|fleets| side_by_side(bench, &fleets)).collect();
    rows.sort_by_key(|row| row.size);
    Box::new(PollResults { rows, plan: bench.plan.clone() })
}

fn side_by_side(bench: &Bench, fleets: &[&Seeded]) -> Vec<PollRow> {
    let pairs: Vec<_> = fleets.iter().map(|fleet| Pair::start(bench, fleet)).collect();
    // nginx has many files.
    machine::settle();
    let mut rows = Vec::new();
    let full = [(true, false), (true, true), (false, false), (false, true)].map(|(kept, gzip)| (kept, gzip, false));
    for (kept, gzip, paused) in full.into_iter().chain([(true, false, true)]) {
        for kind in TYPES {
            let manner = Manner { kind, kept, gzip, paused };
            let polled: Vec<_> = pairs.iter().filter(|pair| bench.plan.includes(pair.size, manner)).collect();
            for pair in &polled {
                warm_up(bench, pair, manner);
            }
            rows.extend(measure(bench, &polled, manner));
        }
    }
    rows
}

/// Polls everything once, so that nginx has the files open. It may not be allowed to keep the files of all types open.
fn warm_up(bench: &Bench, pair: &Pair, manner: Manner) {
    let [ours, nginx] = pair.targets();
    if !bench.plan.smoke {
        wrk::run(&bench.machine, nginx, Manner { kept: true, ..manner }, PollOrder::InTurn(0), WARM_UP_SECONDS);
        wrk::run(&bench.machine, ours, manner, PollOrder::InTurn(0), WARM_UP_SECONDS);
    }
}

fn measure(bench: &Bench, pairs: &[&Pair], manner: Manner) -> Vec<PollRow> {
    let mut outcomes: Vec<[Vec<RunResult>; 2]> = pairs.iter().map(|_| Default::default()).collect();
    let repetitions = pairs.iter().map(|pair| bench.plan.poll_repetitions(pair.size, manner)).max();
    for repetition in 0..repetitions.unwrap_or_default() {
        let mut turns: Vec<_> = pairs
            .iter()
            .zip(&mut outcomes)
            .flat_map(|(pair, outcomes)| pair.targets().into_iter().zip(outcomes).map(|turn| (pair.size, turn)))
            .collect();
        // Every other repetition in reverse, so that periodic load on the machine does not always affect the same server.
        if repetition % 2 == 1 {
            turns.reverse();
        }
        for (size, (target, outcomes)) in turns {
            let (order, seconds) = (PollOrder::Random(repetition as u64 + 1), bench.plan.seconds(size));
            outcomes.push(undisturbed(bench, || wrk::run(&bench.machine, target, manner, order, seconds)));
        }
    }
    let rows = pairs.iter().zip(outcomes).map(|(pair, [ours, nginx])| {
        let row = PollRow { size: pair.size, manner, ours: ServerFigures::new(ours), nginx: ServerFigures::new(nginx) };
        eprintln!("bench: {} clusters, {manner}: {:.2} x nginx", row.size, row.ratio().median);
        row
    });
    rows.collect()
}

/// Repeats a disturbed run, and returns the less disturbed one. It decides by the disturbance and not by the figures.
fn undisturbed(bench: &Bench, run: impl Fn() -> RunResult) -> RunResult {
    let first = run();
    if first.others < DISTURBED || bench.repeats.get() == 0 {
        return first;
    }
    bench.repeats.set(bench.repeats.get() - 1);
    let second = run();
    if second.others < first.others { second } else { first }
}

impl ServerFigures {
    fn new(outcomes: Vec<RunResult>) -> Self {
        let spread = |figure: fn(&RunResult) -> f64| Spread::new(outcomes.iter().map(figure));
        Self {
            per_second: spread(|outcome| outcome.per_second),
            p50_ms: spread(|outcome| outcome.p50_ms),
            p99_ms: spread(|outcome| outcome.p99_ms),
            computed_us: spread(|outcome| outcome.computed_us),
            busy: spread(|outcome| outcome.busy),
            load: spread(|outcome| outcome.load),
            others: spread(|outcome| outcome.others),
            bytes: spread(|outcome| outcome.bytes).median,
            outcomes,
        }
    }

    /// The ratio of a figure to that of another side, in each repetition: a disturbance affects both turns of a repetition, and
    /// perhaps not the next repetitions.
    fn ratio_to(&self, other: &Self, figure: fn(&RunResult) -> f64) -> Spread {
        Spread::new(self.outcomes.iter().zip(&other.outcomes).map(|(one, other)| figure(one) / figure(other)))
    }

    fn json(&self) -> Value {
        json!({
            "polls_per_second": self.per_second.json(),
            "p50_ms": self.p50_ms.json(),
            "p99_ms": self.p99_ms.json(),
            "cpu_us_per_poll": self.computed_us.json(),
            "share_of_core": self.busy.json(),
            "share_of_other_core": self.load.json(),
            "share_of_others": self.others.json(),
            "bytes_per_answer": rounded(self.bytes),
        })
    }
}

impl PollRow {
    /// The ratio of polls per second to nginx.
    pub(crate) fn ratio(&self) -> Spread {
        self.ours.ratio_to(&self.nginx, |outcome| outcome.per_second)
    }

    /// The ratio of polls per second to another size of fleet.
    fn growth(&self, other: &Self) -> Spread {
        self.ours.ratio_to(&other.ours, |outcome| outcome.per_second)
    }

    fn others(&self) -> f64 {
        self.ours.others.median.max(self.nginx.others.median)
    }

    /// Whether both the server and nginx used their whole core.
    pub(crate) fn is_full(&self) -> bool {
        self.ours.busy.median.min(self.nginx.busy.median) >= BUSY
    }

    /// The same ratio by processor time of a poll. Where the load generator was the limit, this is the ratio that counts.
    fn computed_ratio(&self) -> Spread {
        self.nginx.ratio_to(&self.ours, |outcome| outcome.computed_us)
    }

    fn p99_ratio(&self) -> Spread {
        self.ours.ratio_to(&self.nginx, |outcome| outcome.p99_ms)
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "type": self.manner.kind,
            "kept_alive": self.manner.kept,
            "gzip": self.manner.gzip,
            "paused": self.manner.paused,
            "repetitions": self.ours.outcomes.len(),
            "ours": self.ours.json(),
            "nginx": self.nginx.json(),
            "polls_per_second_ratio": self.ratio().json(),
            "cpu_ratio": self.computed_ratio().json(),
            "p99_ratio": self.p99_ratio().json(),
        })
    }
}

impl fmt::Display for PollRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, manner, ours, nginx } = self;
        let connections = if manner.kept { "kept" } else { "each" };
        let how = match manner {
            Manner { paused: true, .. } => "calm",
            Manner { gzip: true, .. } => "gzip",
            _ => "",
        };
        write!(out, "{size:>8} {:<19} {connections:<4} {how:<4}", manner.kind)?;
        write!(out, " {:>24} {:>24} {:>5.2}", rate(&ours.per_second), rate(&nginx.per_second), self.ratio().median)?;
        for figure in [|side: &ServerFigures| side.p50_ms, |side: &ServerFigures| side.p99_ms] {
            write!(out, " {:>6.2} {:>6.2}", figure(ours).median, figure(nginx).median)?;
        }
        write!(out, " {:>5.2}", self.p99_ratio().median)?;
        let (our_time, their_time) = (ours.computed_us.median, nginx.computed_us.median);
        write!(out, " {our_time:>6.1} {their_time:>6.1} {:>5.2}", self.computed_ratio().median)?;
        for figure in
            [|side: &ServerFigures| side.busy, |side: &ServerFigures| side.load, |side: &ServerFigures| side.others]
        {
            write!(out, " {:>4.0}% {:>4.0}%", figure(ours).median * 100.0, figure(nginx).median * 100.0)?;
        }
        write!(out, " {:>6.0} {:>6.0}", ours.bytes, nginx.bytes)
    }
}

impl PollResults {
    pub(crate) fn row(&self, size: usize, manner: Manner) -> Option<&PollRow> {
        self.rows.iter().find(|row| row.size == size && row.manner == manner)
    }
}

impl Section for PollResults {
    fn table(&self) -> String {
        let mut table = String::from(ABOUT);
        table.push_str(HEADS);
        for row in &self.rows {
            writeln!(table, "{row}").unwrap();
        }
        let disturbed = self.rows.iter().filter(|row| row.others() > DISTURBED).count();
        if disturbed > 0 {
            let rows = self.rows.len();
            writeln!(table, "\n!!! OTHER PROCESSES DISTURBED {disturbed} OF {rows} RUNS: LET NOTHING ELSE RUN !!!")
                .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        self.rows.iter().map(PollRow::json).collect()
    }

    fn chart(&self) -> Option<String> {
        Some(chart::draw(self))
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        let mut verdicts = Vec::new();
        for row in self.rows.iter().filter(|row| row.size == self.plan.main) {
            if row.manner.paused {
                let what = format!("p99 compared with nginx, with pauses: {}", row.manner);
                verdicts.push(TargetCheck::at_most(what, row.p99_ratio().median, 1.0, "x"));
                continue;
            }
            // A connection per poll, with gzip, is what Flux Operator does.
            let floor = if row.manner.gzip && !row.manner.kept { 1.0 } else { 0.9 };
            let what = format!("polls/s compared with nginx: {}", row.manner);
            verdicts.push(TargetCheck::at_least(what, row.ratio().median, floor, "x"));
            if !row.is_full() {
                let what = format!("the same by CPU, because a core was not full: {}", row.manner);
                verdicts.push(TargetCheck::at_least(what, row.computed_ratio().median, floor, "x"));
            }
            if row.manner.kept {
                let what = format!("p99 compared with nginx, under full load: {}", row.manner);
                verdicts.push(TargetCheck::at_most(what, row.p99_ratio().median, 1.0, "x"));
            }
        }
        let (small, large) = (self.plan.smallest(), self.plan.largest());
        for row in self.rows.iter().filter(|row| row.size == small) {
            if let Some(larger) = self.row(large, row.manner) {
                let ratio = larger.growth(row).median;
                let what = format!("polls/s at {large} clusters compared with {small}: {}", row.manner);
                verdicts.push(TargetCheck::at_least(what, ratio, 0.85, "x"));
            }
        }
        verdicts
    }
}

fn rate(spread: &Spread) -> String {
    format!("{} ({}-{})", grouped(spread.median), grouped(spread.min), grouped(spread.max))
}
