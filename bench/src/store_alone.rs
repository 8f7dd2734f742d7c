//! The store alone, in this process: the same rows and the same changes, without a server and without reviews. A server cannot be
//! faster with one change after another, so where it misses a target this shows which part of the time is the server's.

use std::{fs, path::Path, time::Instant};

use jiff::Timestamp;
use model::{Change, Document, Origin, Point, ResourceType, Write};
use serde_json::{Value, json};
use store::{SqliteStore, Store as _};

use crate::{
    Bench,
    figures::{Spread, grouped, milliseconds, rounded},
    rows::{self, TableRow},
    seeded::Seeded,
    start, writes,
};

struct Alone {
    size: usize,
    /// Milliseconds for the rows of all documents, and of `sqlite3` for the same.
    load: Spread,
    sqlite: Spread,
    per_second: Spread,
    bare_per_second: Spread,
    /// Milliseconds for a change of all clusters.
    bulk: Spread,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn crate::report::Section> {
    rows::measure_all(bench, bench.fleets.iter(), measure)
}

fn measure(bench: &Bench, fleet: &Seeded) -> Alone {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure_on_runtime(bench, fleet))
}

async fn measure_on_runtime(bench: &Bench, fleet: &Seeded) -> Alone {
    let commits = if bench.plan.smoke { 20 } else { 200 };
    let folder = tempfile::tempdir_in(&fleet.folder).unwrap();
    let file = folder.path().join("fleet.db");
    fs::copy(fleet.folder.join("fleet.db"), &file).unwrap();
    let store = open(&file).await;
    let stored = store.load().await.unwrap();
    let mut head = stored.point;
    let clusters: Vec<_> = stored.documents.iter().filter(|it| it.kind.as_str() == ResourceType::CLUSTER).collect();
    let bytes = clusters[0].body.text().len();
    let bare = writes::bare(&folder.path().join("bare.db"));

    let (mut load, mut sqlite) = (Vec::new(), Vec::new());
    let (mut per_second, mut bare_per_second, mut bulk) = (Vec::new(), Vec::new(), Vec::new());
    let warm_up = bench.plan.warm_up();
    for round in 0..warm_up + bench.plan.repetitions {
        sqlite.push(start::read(fleet));
        let start = Instant::now();
        store.load().await.unwrap();
        load.push(milliseconds(start.elapsed()));

        let changes = (round * commits..).take(commits).map(|turn| {
            let change = change(&head, &[clusters[turn * writes::STRIDE % clusters.len()]]);
            head = head.after(&change);
            change
        });
        let changes: Vec<_> = changes.collect();
        let start = Instant::now();
        for change in &changes {
            store.append(change).await.unwrap();
        }
        per_second.push(commits as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        writes::commit(&bare, commits, bytes);
        bare_per_second.push(commits as f64 / start.elapsed().as_secs_f64());
    }
    for _ in 0..bench.plan.bulk_repetitions(fleet.size) {
        let change = change(&head, &clusters);
        let start = Instant::now();
        store.append(&change).await.unwrap();
        bulk.push(milliseconds(start.elapsed()));
        head = head.after(&change);
    }
    let spread = |mut figures: Vec<_>| Spread::new(figures.split_off(warm_up));
    Alone {
        size: fleet.size,
        load: spread(load),
        sqlite: spread(sqlite),
        per_second: spread(per_second),
        bare_per_second: spread(bare_per_second),
        bulk: Spread::new(bulk),
    }
}

pub(crate) async fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(&format!("sqlite://{}?mode=rw", file.display()).parse().unwrap()).await.unwrap()
}

/// A change that writes documents unchanged.
pub(crate) fn change(head: &Point, documents: &[&Document]) -> Change {
    let write = |it: &&Document| Write { kind: it.kind.clone(), id: it.id.clone(), op: it.op() };
    Change::after(head, origin(), documents.iter().map(write).collect())
}

pub(crate) fn origin() -> Origin {
    Origin { at: Timestamp::UNIX_EPOCH, actor: "bench".to_owned(), reason: None, request_id: None }
}

impl Alone {
    fn load_ratio(&self) -> f64 {
        self.load.median / self.sqlite.median
    }

    fn ratio(&self) -> f64 {
        self.per_second.median / self.bare_per_second.median
    }
}

impl TableRow for Alone {
    const TITLE: &'static str =
        "The store by itself, one change after another, without a server: what stands on it cannot be faster";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        let heads = ["clusters", "reads all, ms", "sqlite3", "x", "appends/s", "bare commits/s", "x", "all, ms"];
        let [clusters, load, sqlite, load_ratio, rate, bare, ratio, bulk] = heads;
        format!("{clusters:>8} {load:>14} {sqlite:>8} {load_ratio:>6} {rate:>10} {bare:>15} {ratio:>5} {bulk:>10}")
    }

    fn line(&self) -> String {
        let (rate, bare) = (grouped(self.per_second.median), grouped(self.bare_per_second.median));
        let (load, sqlite, bulk) = (self.load.median, self.sqlite.median, self.bulk.median);
        let (size, load_ratio, ratio) = (self.size, self.load_ratio(), self.ratio());
        format!(
            "{size:>8} {load:>14.1} {sqlite:>8.1} {load_ratio:>6.2} {rate:>10} {bare:>15} {ratio:>5.2} {bulk:>10.0}"
        )
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "load_ms": self.load.json(),
            "sqlite3_ms": self.sqlite.json(),
            "load_ratio": rounded(self.load_ratio()),
            "appends_per_second": self.per_second.json(),
            "bare_commits_per_second": self.bare_per_second.json(),
            "ratio": rounded(self.ratio()),
            "patch_of_all_ms": self.bulk.json(),
        })
    }
}
