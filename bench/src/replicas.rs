//! A change on one server, until all replicas have it: two that write and three that read, on one PostgreSQL.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use harness::{Postgres, Running, WRITE};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, postgres::PgConnectOptions};

use crate::times::{Times, tell};

const MODES: [&str; 5] = ["crud", "crud", "read-only", "read-only", "read-only"];

/// How often a replica without wake-up calls is looked at.
const CHANGES_WITHOUT_CALLS: usize = 20;

pub(crate) fn run(changes: usize) {
    // As it is installed: a commit is on the disk.
    let postgres = Postgres::start_with(&[("fsync", "on")]);
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let url = postgres.url("fleet");
    let (round_trip, commit) = runtime().block_on(database(&url, changes));

    println!("\nOne PostgreSQL, two servers that write and three that read, {changes} changes\n");
    println!("{:<58} {:>22}   {:>22}", "", "median", "p99");
    let unit = round_trip.median();
    tell("one round trip to the database", &round_trip, unit);
    tell("one commit of a row", &commit, unit);
    let servers: Vec<_> = MODES.iter().map(|mode| start(&url, mode)).collect();
    let (acknowledged, visible) = change(&servers, changes, 0);
    tell("a change, acknowledged", &acknowledged, unit);
    tell("a change, visible on all five", &visible, unit);
    drop(servers);

    // Through a pooler nobody is called; everybody looks.
    let url = postgres.pooled("fleet", "");
    let servers: Vec<_> = MODES.iter().map(|mode| start(&url, mode)).collect();
    let (_, visible) = change(&servers, changes.min(CHANGES_WITHOUT_CALLS), changes);
    tell("the same where the database does not tell of changes", &visible, unit);
    println!("\nx: as many times as long as the median round trip\n");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What the database takes by itself.
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
    // Beside this program.
    let server = std::env::current_exe().unwrap().with_file_name("flux-resourceset");
    let settings = [
        ("DATABASE_URL", url),
        ("API_MODE", mode),
        ("SEED_FILE", "seed.json"),
        ("SNAPSHOT_FILE", "snapshot"),
        ("RUST_LOG", "warn,flux_resourceset=info"),
    ];
    let running = Running::launch(Path::new(&server), Arc::new(folder), &settings);
    harness::eventually("it is ready", &mut || revision(&running).is_some());
    running
}

/// Changes one thing after another on the first server. How long until it is acknowledged, and until all have it.
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
