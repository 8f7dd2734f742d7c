//! Fleets that are not clean, compared with one that is: with references as the seed writes them, and full of problems.
//! Redundant fields of documents, and problems in them, must cost next to nothing. All three are measured in one run and in
//! turns, and each figure is compared with that of the clean fleet.

use std::{fmt::Write as _, fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::{Spread, grouped, milliseconds, rounded},
    fleet::{Style, TYPES, cluster_dns, cluster_id},
    machine::Core,
    memory,
    report::{Section, TargetCheck},
    seeded::Seeded,
    server::Server,
    writes::STRIDE,
    wrk::{self, LoadTarget, Manner, PollOrder},
};

/// The least ratio to the clean fleet; more is better.
const FLOOR: f64 = 0.9;

/// Milliseconds until the main fleet is ready.
const MOST_START: f64 = 400.0;

/// How much a start and the changes of this section may log, in KiB.
const MOST_LOG: f64 = 64.0;

/// The figures of one fleet.
struct Figures {
    size: usize,
    style: Style,
    ready_ms: Spread,
    patch_ms: Spread,
    polls_per_second: Spread,
    /// Microseconds of processor time for a poll; other load on the machine does not change it.
    computed_us: Spread,
    /// With pauses, so that no core is full.
    p99_ms: Spread,
    loaded_mib: f64,
    problems: u64,
    log_kib: f64,
}

struct Fleets {
    rows: Vec<Figures>,
    main: usize,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let mut rows = Vec::new();
    for clean in bench.fleets.iter().filter(|fleet| memory::MAX_RSS_MIB.iter().any(|(size, _)| *size == fleet.size)) {
        let under = clean.folder.parent().unwrap();
        let others = [Style::SeedWritten, Style::Troubled]
            .map(|style| Seeded::make_as(&bench.machine, under, clean.size, style));
        let [seed_written, troubled] = &others;
        rows.extend(measure(bench, [clean, seed_written, troubled]));
        for fleet in &others {
            fs::remove_dir_all(&fleet.folder).unwrap();
        }
    }
    Box::new(Fleets { rows, main: bench.plan.main })
}

/// The three fleets of one size, in the order of the styles.
fn measure(bench: &Bench, fleets: [&Seeded; 3]) -> Vec<Figures> {
    let ready = in_turns(bench.plan.repetitions, |_, index| {
        let server = fleets[index].serve(&bench.machine, Core::Any);
        let taken = milliseconds(server.ready_after);
        server.stop();
        taken
    });
    let loaded = fleets.map(|fleet| memory::after_load(bench, fleet));
    let (patches, problems, logs) = changes(bench, fleets);
    let (polls, computed, p99) = polls(bench, fleets);
    let styles = Style::ALL.into_iter().zip(ready).zip(patches).zip(polls).zip(computed).zip(p99);
    let figures = styles.enumerate().map(
        |(index, (((((style, ready_ms), patch_ms), polls_per_second), computed_us), p99_ms))| {
            let (loaded_mib, problems, log_kib) = (loaded[index], problems[index], logs[index]);
            let size = fleets[index].size;
            Figures {
                size,
                style,
                ready_ms,
                patch_ms,
                polls_per_second,
                computed_us,
                p99_ms,
                loaded_mib,
                problems,
                log_kib,
            }
        },
    );
    figures.collect()
}

/// Measures each fleet so many times, every other time in reverse order, so that load on the machine affects all of them.
fn in_turns(times: usize, mut measure: impl FnMut(usize, usize) -> f64) -> [Spread; 3] {
    let mut figures: [Vec<f64>; 3] = Default::default();
    for turn in 0..times {
        for at in 0..3 {
            let index = if turn % 2 == 0 { at } else { 2 - at };
            figures[index].push(measure(turn, index));
        }
    }
    figures.map(Spread::new)
}

/// Patches single clusters, without adding or solving problems; how many problems there are, and how much was logged.
fn changes(bench: &Bench, fleets: [&Seeded; 3]) -> ([Spread; 3], [u64; 3], [f64; 3]) {
    let servers = fleets.map(|fleet| fleet.serve_changes(&bench.machine, Core::Any));
    let mut connections = servers.each_ref().map(|(server, _)| server.connect());
    let patches = if bench.plan.smoke { 20 } else { 200 };
    let spreads = in_turns(patches, |turn, index| {
        let path = format!("/clusters/{}", cluster_id(turn * STRIDE % fleets[index].size));
        let body = json!({"node_count": 100 + turn}).to_string();
        let start = Instant::now();
        connections[index].patch(&path, &body).unwrap().ok();
        milliseconds(start.elapsed())
    });
    let problems = connections.each_mut().map(|connection| {
        let page = connection.get("/problems?limit=1", "").unwrap().ok();
        page.header("x-total-count").unwrap().parse().unwrap()
    });
    let logs = servers.each_ref().map(|(server, folder)| {
        let files = [server.log.clone(), folder.path().join("server.out")];
        files.iter().map(|file| fs::metadata(file).unwrap().len() as f64 / 1024.0).sum()
    });
    (spreads, problems, logs)
}

/// Polls of components over kept connections: polls per second, processor time for each and, with pauses, their p99.
fn polls(bench: &Bench, fleets: [&Seeded; 3]) -> ([Spread; 3], [Spread; 3], [Spread; 3]) {
    let servers = fleets.map(|fleet| fleet.serve(&bench.machine, Core::Measured));
    let names: Vec<_> = (0..fleets[0].size).map(cluster_dns).collect();
    let file = fleets[0].folder.join("all");
    fs::write(&file, names.join("\n")).unwrap();
    let poll = |server: &Server, paused: bool, turn: usize| {
        let target = LoadTarget { address: &server.address, pid: server.pid(), names: &file, log: &server.log };
        let manner = Manner { kind: TYPES[0], kept: true, gzip: false, paused };
        wrk::run(&bench.machine, target, manner, PollOrder::Random(turn as u64 + 1), bench.plan.seconds(fleets[0].size))
    };
    let repetitions = bench.plan.repetitions;
    let mut computed: [Vec<f64>; 3] = Default::default();
    let per_second = in_turns(repetitions, |turn, index| {
        let outcome = poll(&servers[index], false, turn);
        computed[index].push(outcome.computed_us);
        outcome.per_second
    });
    let p99 = in_turns(repetitions, |turn, index| poll(&servers[index], true, turn).p99_ms);
    (per_second, computed.map(Spread::new), p99)
}

impl Figures {
    /// The ratio of each figure to that of the clean fleet: 1 if they are equal, less if it is worse.
    fn ratios(&self, clean: &Self) -> [(&'static str, f64); 6] {
        [
            ("polls/s", self.polls_per_second.median / clean.polls_per_second.median),
            ("CPU of a poll", clean.computed_us.median / self.computed_us.median),
            ("p99 of polls with pauses", clean.p99_ms.median / self.p99_ms.median),
            ("a PATCH of a cluster", clean.patch_ms.median / self.patch_ms.median),
            ("start to ready", clean.ready_ms.median / self.ready_ms.median),
            ("RSS after load", clean.loaded_mib / self.loaded_mib),
        ]
    }

    fn json(&self, clean: &Self) -> Value {
        json!({
            "clusters": self.size,
            "style": self.style.name(),
            "problems": self.problems,
            "polls_per_second": self.polls_per_second.json(),
            "cpu_us_per_poll": self.computed_us.json(),
            "p99_ms_with_pauses": self.p99_ms.json(),
            "patch_ms": self.patch_ms.json(),
            "ready_ms": self.ready_ms.json(),
            "loaded_mib": rounded(self.loaded_mib),
            "log_kib": rounded(self.log_kib),
            "beside_clean": self.ratios(clean).map(|(what, ratio)| json!({"what": what, "ratio": rounded(ratio)})),
        })
    }
}

impl Fleets {
    /// Each fleet, with the clean one of its size.
    fn rows(&self) -> impl Iterator<Item = (&Figures, &Figures)> {
        let clean = |size: usize| self.rows.iter().find(|row| row.size == size && row.style == Style::Clean).unwrap();
        self.rows.iter().map(move |row| (row, clean(row.size)))
    }
}

impl Section for Fleets {
    fn table(&self) -> String {
        let mut table = String::from(
            "Fleets that are not clean, compared with one that is (medians; x: ratio to the clean one, less than 1 is worse)\n\n",
        );
        write!(table, "{:>8} {:<12} {:>9}", "clusters", "fleet", "problems").unwrap();
        for head in ["polls/s", "CPU us", "p99 ms", "PATCH ms", "ready ms", "RSS MiB"] {
            write!(table, " {head:>8} {:>5}", "x").unwrap();
        }
        writeln!(table, " {:>8}", "log KiB").unwrap();
        for (row, clean) in self.rows() {
            let [polls, computed, p99, patch, ready, memory] = row.ratios(clean).map(|(_, ratio)| ratio);
            let (problems, per_second) = (grouped(row.problems as f64), grouped(row.polls_per_second.median));
            write!(table, "{:>8} {:<12} {problems:>9} {per_second:>8} {polls:>5.2}", row.size, row.style.name())
                .unwrap();
            for (figure, ratio) in [
                (row.computed_us.median, computed),
                (row.p99_ms.median, p99),
                (row.patch_ms.median, patch),
                (row.ready_ms.median, ready),
                (row.loaded_mib, memory),
            ] {
                write!(table, " {figure:>8.2} {ratio:>5.2}").unwrap();
            }
            writeln!(table, " {:>8.1}", row.log_kib).unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        self.rows().map(|(row, clean)| row.json(clean)).collect()
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        let mut verdicts = Vec::new();
        for (row, clean) in self.rows() {
            let fleet = format!("{} clusters, {}", row.size, row.style.name());
            if let Some((_, most)) = memory::MAX_RSS_MIB.iter().find(|(size, _)| *size == row.size) {
                verdicts.push(TargetCheck::at_most(format!("RSS after load: {fleet}"), row.loaded_mib, *most, "MiB"));
            }
            verdicts.push(TargetCheck::at_most(
                format!("log of a start and changes: {fleet}"),
                row.log_kib,
                MOST_LOG,
                "KiB",
            ));
            if row.size != self.main {
                continue;
            }
            verdicts.push(TargetCheck::at_most(
                format!("start to ready: {fleet}"),
                row.ready_ms.median,
                MOST_START,
                "ms",
            ));
            if row.style != Style::Clean {
                let ratios = row.ratios(clean).into_iter();
                verdicts.extend(ratios.map(|(what, ratio)| {
                    TargetCheck::at_least(format!("{what} compared with the clean fleet: {fleet}"), ratio, FLOOR, "x")
                }));
            }
        }
        verdicts
    }
}
