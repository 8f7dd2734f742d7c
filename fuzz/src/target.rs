//! The server under test: a real process with the demo fleet in a SQLite file, and the checks after each request.

use std::{io, path::Path, sync::Arc};

use harness::{LONG, Running, WRITE, repository};
use model::Value;
use serde_json::json;

use crate::{
    case::{Request, text_of},
    contract::Contract,
    process::ProcessStatus,
};

/// The largest answer that is read here.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

pub(crate) struct TestServer<'a> {
    running: Running,
    contract: &'a Contract,
    agent: ureq::Agent,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Why a case fails, as a sentence.
pub(crate) type CheckResult = Result<(), String>;

impl<'a> TestServer<'a> {
    pub(crate) fn start(binary: &Path, contract: &'a Contract) -> Self {
        let seed = repository("data/seed.json");
        let settings = [("API_MODE", "crud"), ("SEED_FILE", seed.to_str().unwrap())];
        let running = Running::launch(binary, Arc::new(tempfile::tempdir().unwrap()), &settings);
        // A new connection for each request: the server closes one on which it has refused to read a body.
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LONG))
            .max_idle_connections(0);
        let agent = config.allow_non_standard_methods(true).build().into();
        let target = Self { running, contract, agent };
        let is_ready = || matches!(target.get("/ready"), Ok(answer) if answer.status == 200);
        harness::eventually("the server is ready", &mut { is_ready });
        target
    }

    pub(crate) fn log(&self) -> String {
        self.running.log()
    }

    /// Sends a request; a server that does not answer has failed.
    fn send(&self, request: &Request) -> Result<Response, String> {
        self.exchange(request).map_err(|error| format!("no answer: {error}"))
    }

    fn exchange(&self, request: &Request) -> Result<Response, ureq::Error> {
        let uri = format!("http://{}{}", self.running.address(), request.path);
        let builder = ureq::http::Request::builder().method(request.method.as_str()).uri(uri);
        let mut builder = builder.header("authorization", format!("Bearer {WRITE}"));
        if let Some(media) = &request.media {
            builder = builder.header("content-type", media);
        }
        let response = if request.method == "GET" {
            self.agent.run(builder.body(())?)
        } else {
            self.agent.run(builder.body(text_of(&request.body))?)
        };
        let mut response = response?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_BYTES).lossy_utf8(true).read_to_string();
        Ok(Response { status, body: body? })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Response, String> {
        self.send(&Request { method: "GET".to_owned(), path: path.to_owned(), media: None, body: Vec::new() })
    }

    /// Sends a request, and checks its answer and the server.
    pub(crate) fn check(&self, request: &Request) -> CheckResult {
        let answer = match self.exchange(request) {
            // A request that a path does not allow is refused before its body is read, and a client that is still sending then finds
            // the connection closed. A server that has ended answers no request.
            Err(ureq::Error::Io(error)) if is_disconnect(&error) && !request.body.is_empty() => {
                self.expect("/health", &[200])?;
                return self.check_process();
            }
            answer => answer.map_err(|error| format!("no answer: {error}"))?,
        };
        let Request { method, path, .. } = request;
        if !self.contract.allows(method, path, answer.status) {
            let body: String = answer.body.chars().take(500).collect();
            return Err(format!("{} is not a documented status: {body}", answer.status));
        }
        self.check_process()
    }

    fn check_process(&self) -> CheckResult {
        match ProcessStatus::read(self.running.pid()) {
            Ok(status) if !status.has_ended() => status.check_peak("the server"),
            Ok(_) | Err(_) => Err("the process has ended".to_owned()),
        }
    }

    /// Everything that was saved is read, listed, filtered and polled.
    pub(crate) fn check_fleet(&self, types: &[Value]) -> CheckResult {
        for ty in types {
            let list = format!("/{}", text(ty, "plural"));
            for document in self.documents(&list)? {
                self.expect(&format!("{list}/{}", text(&document, "id")), &[200])?;
                for label in document["labels"].as_object().into_iter().flatten().take(1).map(|(key, _)| key) {
                    self.expect(&format!("{list}?label={}=x", encoded(label)), &[200])?;
                }
            }
            for filter in ty["filters"].as_array().into_iter().flatten().filter_map(Value::as_str).take(3) {
                self.expect(&format!("{list}?{filter}=x"), &[200])?;
            }
        }
        for cluster in self.documents("/clusters")? {
            for path in types.iter().map(|ty| text(ty, "path")).filter(|path| *path != "clusters") {
                let poll = format!("/api/v2/flux/clusters/{}/{path}?empty=explicit", text(&cluster, "cluster_dns"));
                self.check(&Request { method: "GET".to_owned(), path: poll, media: None, body: Vec::new() })?;
            }
        }
        // With no cluster at all, provisioners get an error and not an empty list.
        self.expect("/api/v2/flux/clusters", &[200, 404])?;
        for path in ["/problems", "/changes?limit=100", "/types/changes", "/metrics"] {
            self.expect(path, &[200])?;
        }
        self.check_process()
    }

    /// Everything that was saved can be deleted: clusters first, then what they referred to.
    pub(crate) fn delete_all(&self, types: &[Value]) -> CheckResult {
        for cluster in self.documents("/clusters")? {
            let path = format!("/clusters/{}", text(&cluster, "id"));
            let open = json!({"deletion_protection": false}).to_string();
            self.change("PATCH", &path, open)?;
            self.change("DELETE", &path, String::new())?;
        }
        for cluster in self.documents("/clusters?decommissioned=true")? {
            self.change("DELETE", &format!("/clusters/{}?purge=true", text(&cluster, "id")), String::new())?;
        }
        for ty in types {
            let list = format!("/{}", text(ty, "plural"));
            for document in self.documents(&list)? {
                self.change("DELETE", &format!("{list}/{}?cascade=true", text(&document, "id")), String::new())?;
            }
            if !self.documents(&list)?.is_empty() {
                return Err(format!("{list} still has documents, though all were deleted"));
            }
        }
        Ok(())
    }

    pub(crate) fn documents(&self, list: &str) -> Result<Vec<Value>, String> {
        let answer = self.expect(list, &[200])?;
        answer.json().as_array().cloned().ok_or_else(|| format!("GET {list} does not answer a list"))
    }

    fn expect(&self, path: &str, statuses: &[u16]) -> Result<Response, String> {
        let answer = self.get(path)?;
        if statuses.contains(&answer.status) {
            return Ok(answer);
        }
        let body: String = answer.body.chars().take(500).collect();
        Err(format!("GET {path} answers {}: {body}", answer.status))
    }

    fn change(&self, method: &str, path: &str, body: String) -> CheckResult {
        let media = Some("application/merge-patch+json".to_owned());
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            media,
            body: vec![crate::case::BodyPart::Text(body)],
        };
        let answer = self.send(&request)?;
        if answer.status == 200 {
            return Ok(());
        }
        let body: String = answer.body.chars().take(500).collect();
        Err(format!("a saved document cannot be deleted: {method} {path} answers {}: {body}", answer.status))
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}

/// A text field; empty if it is missing.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A text, percent-encoded for a query.
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
