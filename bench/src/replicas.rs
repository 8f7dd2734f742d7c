//! How long a change takes until it is visible on all replicas: two that write and three that read, on one PostgreSQL.

use std::{
    fmt::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use harness::{Postgres, Running, WRITE};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, postgres::PgConnectOptions};

use crate::{
    Bench,
    figures::{Times, rounded},
    machine,
    report::Section,
};

const MODES: [&str; 5] = ["crud", "crud", "read-only", "read-only", "read-only"];

/// How many changes are measured without notifications.
const CHANGES_WITHOUT_NOTIFICATIONS: usize = 20;

struct Replicas {
    /// The version of the database.
    postgres: String,
    changes: usize,
    /// Each measurement, with its key and its title. The first is a round trip.
    rows: Vec<(&'static str, &'static str, Times)>,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let changes = if bench.plan.smoke { 100 } else { 1_000 };
    // As in an installation: a commit is on the disk.
    let postgres = Postgres::start_with(&[("fsync", "on")]);
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let version = postgres.sql("fleet", "SHOW server_version");
    let url = postgres.url("fleet");
    let (round_trip, commit) = runtime().block_on(database(&url, changes));
    let servers: Vec<_> = MODES.iter().map(|mode| start(&url, mode)).collect();
    let (acknowledged, visible) = change(&servers, changes, 0);
    drop(servers);

    // Through a pooler there are no notifications; replicas poll.
    let url = postgres.pooled("fleet", "");
    let servers: Vec<_> = MODES.iter().map(|mode| start(&url, mode)).collect();
    let (_, not_notified) = change(&servers, changes.min(CHANGES_WITHOUT_NOTIFICATIONS), changes);
    let rows = vec![
        ("round_trip", "one round trip to the database", round_trip),
        ("commit", "one commit of a row", commit),
        ("acknowledged", "a change, acknowledged", acknowledged),
        ("visible", "a change, visible on all five", visible),
        ("visible_without_calls", "the same without notifications of the database", not_notified),
    ];
    Box::new(Replicas { postgres: version.trim().to_owned(), changes, rows })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The times of the database alone.
async fn database(url: &str, times: usize) -> (Times, Times) {
    let mut connection = url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    sqlx::raw_sql("CREATE TABLE bench (at BIGINT)").execute(&mut connection).await.unwrap();
    let round_trip = time(&mut connection, "SELECT 1", times).await;
    let commit = time(&mut connection, "INSERT INTO bench VALUES (1)", times).await;
    (round_trip, commit)
}

async fn time(connection: &mut PgConnection, statement: &'static str, times: usize) -> Times {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
        taken.push(start.elapsed());
    }
    Times::new(taken)
}

fn start(url: &str, mode: &str) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let seed = json!({
        "namespaces": [{"id": "one"}],
        "clusters": [{"cluster_name": "c", "cluster_dns": "c.example", "environment": "dev", "namespaces": [{"id": "one"}]}],
    });
    std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
    let settings = [
        ("DATABASE_URL", url),
        ("API_MODE", mode),
        ("SEED_FILE", "seed.json"),
        ("SNAPSHOT_FILE", "snapshot"),
        ("RUST_LOG", "warn,flux_resourceset=info"),
    ];
    let running = Running::launch(Path::new(&machine::server()), Arc::new(folder), &settings);
    harness::eventually("it is ready", &mut || revision(&running).is_some());
    running
}

/// Makes changes on the first server. How long until each is acknowledged, and until it is visible on all.
fn change(servers: &[Running], changes: usize, from: usize) -> (Times, Times) {
    let agent = agent();
    let (mut acknowledged, mut visible) = (Vec::with_capacity(changes), Vec::with_capacity(changes));
    for turn in from..from + changes {
        let url = format!("http://{}/namespaces/one", servers[0].address());
        let body = json!({"labels": {"turn": turn.to_string()}}).to_string();
        let start = Instant::now();
        let answer = agent
            .patch(url)
            .header("authorization", format!("Bearer {WRITE}"))
            .header("content-type", "application/json")
            .send(body)
            .unwrap();
        acknowledged.push(start.elapsed());
        let made: u64 = answer.headers()["x-revision"].to_str().unwrap().parse().unwrap();
        for server in servers {
            while revision(server).is_none_or(|revision| revision < made) {
                assert!(start.elapsed() < Duration::from_secs(10), "a replica does not follow");
            }
        }
        visible.push(start.elapsed());
    }
    (Times::new(acknowledged), Times::new(visible))
}

fn agent() -> ureq::Agent {
    thread_local! {
        static AGENT: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    }
    AGENT.with(Clone::clone)
}

fn revision(server: &Running) -> Option<u64> {
    let mut answer = agent().get(format!("http://{}/ready", server.address())).call().unwrap();
    let body: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
    body["revision"].as_u64()
}

impl Section for Replicas {
    fn table(&self) -> String {
        let changes = self.changes;
        let mut table = format!(
            "One PostgreSQL, two servers that write and three that read, {changes} changes (x: median round trips)\n\n"
        );
        writeln!(table, "{:<58} {:>22}   {:>22}", "", "median", "p99").unwrap();
        let unit = self.rows[0].2.median();
        for (_, name, times) in &self.rows {
            let (median, p99) = (times.median(), times.p99());
            writeln!(
                table,
                "{name:<58} {median:>9.3} ms {:>7.1} x   {p99:>9.3} ms {:>7.1} x",
                median / unit,
                p99 / unit
            )
            .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        let row = |(name, _, times): &(&'static str, &'static str, Times)| {
            let figures = json!({
                "median_ms": rounded(times.median()),
                "p99_ms": rounded(times.p99()),
                "min_ms": rounded(times.permille(0)),
                "max_ms": rounded(times.permille(1_000)),
            });
            ((*name).to_owned(), figures)
        };
        let mut rows: serde_json::Map<_, _> = self.rows.iter().map(row).collect();
        rows.insert("changes".to_owned(), self.changes.into());
        rows.insert("postgresql".to_owned(), self.postgres.clone().into());
        rows.into()
    }
}
