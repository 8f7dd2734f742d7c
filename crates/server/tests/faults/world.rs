//! A small fleet on a PostgreSQL, and writers that change it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use harness::{Load, LoadReport, READ};
use model::Revision;
use serde_json::{Value, json};
use store::{MissingTables, PostgresStore, Store as _, Timeouts};

use crate::server::{Server, block_on};

pub(crate) const CLUSTERS: usize = 12;
const NAMESPACES: usize = 400;
const PAUSE: Duration = Duration::from_millis(10);
const TYPES: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

/// A fleet in which every cluster has one namespace and one component.
pub(crate) fn seed() -> Value {
    let cluster = |at: usize| {
        json!({
            "cluster_name": format!("c{at}"), "cluster_dns": dns(at), "environment": "dev",
            "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "n0"}],
        })
    };
    json!({
        "platform_components": [{"id": "podinfo", "component_path": "podinfo", "oci_url": "oci://registry.example/podinfo",
            "oci_tag": "1.0.0"}],
        "namespaces": (0..NAMESPACES).map(|at| json!({"id": format!("n{at}")})).collect::<Vec<_>>(),
        "clusters": (0..CLUSTERS).map(cluster).collect::<Vec<_>>(),
    })
}

pub(crate) fn dns(cluster: usize) -> String {
    format!("c{cluster}.example")
}

/// The paths that the clusters poll.
pub(crate) fn polls() -> Vec<String> {
    let of = |at| TYPES.map(|ty| format!("/api/v2/flux/clusters/{}/{ty}", dns(at)));
    (0..CLUSTERS).flat_map(of).collect()
}

/// The settings of a server of this fleet.
pub(crate) fn settings<'a>(url: &'a str, mode: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("DATABASE_URL", url),
        ("API_MODE", mode),
        ("SEED_FILE", "seed.json"),
        ("SNAPSHOT_FILE", "snapshot"),
        ("DATABASE_POOL_TIMEOUT", "2s"),
        ("DATABASE_STATEMENT_TIMEOUT", "2s"),
    ]
}

/// Starts a server and does not wait until it is ready.
pub(crate) fn launch(url: &str, mode: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.json"), seed().to_string()).unwrap();
    Server::launch(Arc::new(folder), &settings(url, mode))
}

/// Starts a server.
pub(crate) fn start(url: &str, mode: &str) -> Server {
    let server = launch(url, mode);
    wait_until_ready(&server);
    server
}

/// Starts a server again in its folder, with its files.
pub(crate) fn start_again(server: Server, url: &str, mode: &str) -> Server {
    let folder = server.folder().clone();
    drop(server);
    let server = Server::launch(folder, &settings(url, mode));
    wait_until_ready(&server);
    server
}

pub(crate) fn wait_until_ready(server: &Server) {
    server.wait_until("it is ready", || server.get_open("/ready").status == 200);
}

pub(crate) fn wait_for_store(server: &Server, status: &str) {
    server.wait_until(&format!("its store is {status}"), || server.get_open("/ready").json()["store"] == status);
}

/// Every answer of a server.
pub(crate) fn answers(server: &Server) -> BTreeMap<String, String> {
    let answer = |path: String| {
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        (path, answer.body)
    };
    polls().into_iter().map(answer).collect()
}

/// Waits until all servers are at the head of the change log, and checks that their answers are equal.
pub(crate) fn converge(servers: &[&Server], url: &str) {
    let head = log(url).last().map_or(Revision::ZERO, |(revision, _)| *revision);
    for server in servers {
        server.wait_until("it has caught up", || {
            let ready = server.get_open("/ready").json();
            ready["store"] == "following" && ready["revision"] == json!(head)
        });
    }
    let first = answers(servers[0]);
    for server in &servers[1..] {
        assert!(answers(server) == first, "two replicas answer differently");
    }
}

/// The whole change log: each revision with the id of its request.
pub(crate) fn log(url: &str) -> Vec<(Revision, Option<String>)> {
    let timeouts = Timeouts { connection: harness::LONG, statement: harness::LONG };
    let changes = block_on(async {
        let store = PostgresStore::open(&url.parse().unwrap(), 1, timeouts, MissingTables::Refuse).await.unwrap();
        store.changes_after(Revision::ZERO, u32::MAX).await.unwrap().changes
    });
    changes.into_iter().map(|change| (change.revision, change.request_id)).collect()
}

/// Checks that the change log has no gap, and has every acknowledged change once.
pub(crate) fn assert_nothing_lost(url: &str, acknowledged: &[(u64, String)]) {
    let log = log(url);
    let revisions: Vec<_> = log.iter().map(|(revision, _)| revision.0).collect();
    assert_eq!(revisions, (1..=log.len() as u64).collect::<Vec<_>>(), "the change log has a gap");
    let made: BTreeMap<_, _> = log.iter().map(|(revision, request)| (revision.0, request.as_deref())).collect();
    for (revision, request) in acknowledged {
        assert_eq!(made.get(revision), Some(&Some(request.as_str())), "revision {revision} was acknowledged");
    }
}

/// Polls every path of each server separately, so that a replica that lags is not mistaken for one that serves an older fleet.
pub(crate) fn load(servers: &[&Server], per_second: u32) -> Vec<Load> {
    let each = per_second / u32::try_from(servers.len()).unwrap();
    servers.iter().map(|server| Load::start(vec![server.address().to_owned()], polls(), READ, each)).collect()
}

/// Ends loads; every request must have been answered, and no answer may have become shorter.
pub(crate) fn finish_without_failures(loads: Vec<Load>) -> Vec<LoadReport> {
    let reports: Vec<_> = loads.into_iter().map(Load::finish).collect();
    for report in &reports {
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert!(report.shorter.is_empty(), "{:?}", report.shorter);
        assert!(report.ok > 0);
    }
    reports
}

/// A writer that makes changes which remove nothing, one after another, until it is stopped.
pub(crate) struct Writing {
    over: Arc<AtomicBool>,
    done: Arc<Mutex<Vec<(u64, String)>>>,
    made: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

impl Writing {
    /// Assigns one namespace after another to the clusters, through these servers in turn; then it relabels the namespaces.
    /// A refused change is retried. It pauses before each change: otherwise other servers would never append a change first.
    pub(crate) fn start(addresses: Vec<String>) -> Self {
        let (over, done) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (made, refused) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let writer = thread::spawn({
            let (over, done, made, refused) = (over.clone(), done.clone(), made.clone(), refused.clone());
            move || {
                for turn in 0.. {
                    let (path, body) = addition(turn);
                    let request = format!("request-{turn}");
                    let mut tries = 0;
                    thread::sleep(PAUSE);
                    loop {
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        let address = &addresses[turn % addresses.len()];
                        if let Some(revision) = put(address, &path, &body, &request) {
                            made.fetch_add(1, Ordering::Relaxed);
                            // A change that was reported as refused may have been made; then the retry had nothing to do.
                            if tries == 0 {
                                done.lock().unwrap().push((revision, request));
                            }
                            break;
                        }
                        tries += 1;
                        refused.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(PAUSE);
                    }
                }
            }
        });
        Self { over, done, made, refused, writer: Some(writer) }
    }

    /// How many changes were acknowledged so far.
    pub(crate) fn so_far(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// How many were refused so far.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Waits for some more changes.
    pub(crate) fn wait_for_more(&self, count: u64) {
        let target = self.so_far() + count;
        harness::eventually("changes go on", &mut || self.so_far() >= target);
    }

    /// Stops it, and returns the acknowledged changes.
    pub(crate) fn finish(mut self) -> Vec<(u64, String)> {
        self.over.store(true, Ordering::Relaxed);
        self.writer.take().unwrap().join().unwrap();
        self.done.lock().unwrap().clone()
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The path and the body of a change that removes nothing. Each makes a revision.
fn addition(turn: usize) -> (String, Value) {
    let (namespace, cluster) = (1 + turn / CLUSTERS, turn % CLUSTERS);
    if namespace < NAMESPACES {
        (format!("/clusters/c{cluster}/namespaces/n{namespace}"), json!({}))
    } else {
        let id = format!("n{}", turn % NAMESPACES);
        (format!("/namespaces/{id}"), json!({"id": id, "labels": {"turn": turn.to_string()}}))
    }
}

/// The revision of the change, if it was acknowledged.
fn put(address: &str, path: &str, body: &Value, request: &str) -> Option<u64> {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30)));
    let agent: ureq::Agent = config.build().into();
    let answer = agent
        .put(format!("http://{address}{path}"))
        .header("authorization", "Bearer write-token")
        .header("x-request-id", request)
        .send(body.to_string());
    let answer = answer.ok()?;
    if answer.status() == 503 {
        assert!(answer.headers().contains_key("retry-after"), "{path} is refused without Retry-After");
    }
    (answer.status() == 200).then(|| answer.headers()["x-revision"].to_str().unwrap().parse().unwrap())
}
