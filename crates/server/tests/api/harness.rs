//! A real server process and a real HTTP client.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::Arc,
};

use harness::{LONG, READ, Running};
use jiff::Timestamp;
use model::{Body, Change, Id, Op, Origin, Revision, Value, Write};
use nix::{sys::signal, unistd::Pid};
use store::{SqliteStore, Store as _};
use tempfile::TempDir;

pub(crate) use harness::{eventually, repository};

const BINARY: &str = env!("CARGO_BIN_EXE_flux-resourceset");

/// The server's command, with an environment of its own and a database in a folder of its own.
pub(crate) fn command(folder: &Path) -> Command {
    harness::command(Path::new(BINARY), folder)
}

pub(crate) struct Server {
    running: Running,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), settings)
    }

    pub(crate) fn start_in(folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Self {
        let server = Self::launch(folder, settings);
        server.wait_until("it is ready", || server.get_open("/ready").status == 200);
        server
    }

    /// Starts a server with the demo seed.
    pub(crate) fn demo() -> Self {
        Self::start(&[("SEED_FILE", repository("data/seed.json").to_str().unwrap())])
    }

    /// Starts a server with a seed.
    pub(crate) fn seeded(seed: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        Self::start_in(Arc::new(folder), &[("SEED_FILE", "seed.json")])
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn launch(folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Self {
        Self { running: Running::launch(Path::new(BINARY), folder, settings) }
    }

    pub(crate) fn folder(&self) -> &Arc<TempDir> {
        &self.running.folder
    }

    pub(crate) fn address(&self) -> &str {
        self.running.address()
    }

    /// What the server has logged so far.
    pub(crate) fn log(&self) -> String {
        self.running.log()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, Some(&format!("Bearer {READ}")))
    }

    pub(crate) fn get_open(&self, path: &str) -> Answer {
        self.request("GET", path, None)
    }

    pub(crate) fn poll(&self, dns: &str, rest: &str) -> Answer {
        self.get(&format!("/api/v2/flux/clusters/{dns}/{rest}"))
    }

    /// Starts a server in mode crud, with the demo seed.
    pub(crate) fn crud() -> Self {
        Self::start(&[("API_MODE", "crud"), ("SEED_FILE", repository("data/seed.json").to_str().unwrap())])
    }

    /// Starts a server in mode crud, with a seed.
    pub(crate) fn crud_with(seed: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        Self::start_in(Arc::new(folder), &[("API_MODE", "crud"), ("SEED_FILE", "seed.json")])
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.write("POST", path, body, &[])
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.write("PUT", path, body, &[])
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Answer {
        self.write("PATCH", path, body, &[])
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, Some(&format!("Bearer {}", harness::WRITE)))
    }

    /// Sends a change with the write token and more headers.
    pub(crate) fn write(&self, method: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![("authorization", "Bearer write-token")];
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        self.exchange(method, path, &all, Some(body.to_string()))
    }

    /// The status of a change; None if the server cannot be reached.
    pub(crate) fn try_write(&self, method: &str, path: &str, body: &Value) -> Option<u16> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let uri = format!("http://{}{path}", self.address());
        let request =
            ureq::http::Request::builder().method(method).uri(uri).header("authorization", "Bearer write-token");
        agent.run(request.body(body.to_string()).unwrap()).ok().map(|response| response.status().as_u16())
    }

    pub(crate) fn request(&self, method: &str, path: &str, authorization: Option<&str>) -> Answer {
        let headers: Vec<_> = authorization.map(|value| ("authorization", value)).into_iter().collect();
        self.exchange(method, path, &headers, None)
    }

    pub(crate) fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<String>) -> Answer {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(LONG))
            .build()
            .into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.address()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = match body {
            Some(body) => agent.run(request.body(body).unwrap()).unwrap(),
            None => agent.run(request.body(()).unwrap()).unwrap(),
        };
        let headers = response.headers().clone();
        let content_type = headers.get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
        let body = response.body_mut().with_config().limit(64 * 1024 * 1024).read_to_string();
        let body = body.unwrap_or_else(|error| panic!("{method} {path}: {error}; the server's log:\n{}", self.log()));
        Answer { status: response.status().as_u16(), content_type, headers, body }
    }

    /// Waits for a condition that must become true soon.
    pub(crate) fn wait_until(&self, what: &str, mut is: impl FnMut() -> bool) {
        harness::eventually_or(&|| format!("{what}; the server's log:\n{}", self.log()), &mut is);
    }

    /// Waits until the server has read its store once more, completely after this call: what it has not done by then, it will
    /// not do.
    pub(crate) fn after_a_refresh(&self) {
        let refreshes = || {
            let metrics = self.get_open("/metrics").body;
            let count = metrics.lines().find_map(|line| line.strip_prefix("flux_resourceset_store_refreshes_total "));
            count.expect("refreshes are counted").parse::<u64>().unwrap()
        };
        // The first refresh that is counted may have begun before this call.
        let enough = refreshes() + 2;
        self.wait_until("the store is read again", || refreshes() >= enough);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(crate) fn signal(&self, signal: signal::Signal) {
        signal::kill(Pid::from_raw(self.pid().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn wait(self) -> ExitStatus {
        self.running.wait()
    }

    /// The file of the default database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder().path().join("data/flux-resourceset.db")
    }

    /// Appends a change to the change log from this process, as another server would.
    pub(crate) fn append(&self, writes: &[(&str, &str, Op)]) -> Revision {
        append(&self.database(), writes)
    }
}

pub(crate) fn append(database: &Path, writes: &[(&str, &str, Op)]) -> Revision {
    let dsn = format!("sqlite://{}?mode=rwc", database.display()).parse().unwrap();
    let writes =
        writes.iter().map(|(kind, id, op)| Write { kind: (*kind).into(), id: Id::parse(id).unwrap(), op: op.clone() });
    let writes = writes.collect();
    block_on(async {
        let store = SqliteStore::open(&dsn).await.unwrap();
        let head = store.bounds().await.unwrap().head;
        let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
        let change = Change::after(&head, origin, writes);
        store.append(&change).await.unwrap();
        change.revision
    })
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn put(body: &Value) -> Op {
    Op::Put(Body::from_fields(body.as_object().unwrap()))
}
