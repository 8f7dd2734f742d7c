//! Requests and answers.

use std::{fmt, io, thread, time::Duration};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use ureq::{
    Agent, Body,
    http::{HeaderValue, Request, Response, Uri, header},
    tls::{RootCerts, TlsConfig},
};

use api::{Plan, ProblemDetails};

use crate::{ClientError, Edit, Fetched, Made, Query, stream::Changes};

/// A bearer token; it cannot be printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Takes a token, without the white space around it. None where nothing remains, or where it cannot be sent in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let holds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        holds.then(|| Self(text.to_owned()))
    }

    /// Its text, for the Secret in which a cluster keeps it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Which server, and with what authority.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address, such as `https://fleet.example.com`.
    pub url: String,
    /// For reading.
    pub read: Option<Token>,
    /// For writing.
    pub write: Option<Token>,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// How often to retry where that is safe and the server answers 429 or 503.
    pub retries: u32,
}

/// Called before a pause, with its length and the answer of the server.
type Waiting = dyn Fn(Duration, &str);

/// A server.
pub struct Client {
    agent: Agent,
    streams: Agent,
    base: String,
    settings: Settings,
    reason: Option<HeaderValue>,
    waiting: Box<Waiting>,
}

/// How long it may take until a server takes a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one stream may last. A silent server looks like a dead one; then a new stream is opened.
const STREAM: Duration = Duration::from_mins(2);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// More than any answer: lists of large fleets are large.
const LARGEST: u64 = 4 << 30;

/// What a part of a path may contain as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

impl Client {
    /// A client of a server; nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self, ClientError> {
        let bad = |reason: &str| ClientError::Address { url: settings.url.clone(), reason: reason.to_owned() };
        let uri: Uri = settings.url.trim().parse().map_err(|error| bad(&format!("{error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(bad("it begins with http:// or https://"));
        }
        if uri.query().is_some() {
            return Err(bad("it has no query"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            // What stands there may be a password.
            let reason = "it has no user and no password in it".to_owned();
            return Err(ClientError::Address { url: "…@…".to_owned(), reason });
        }
        let reason = settings.reason.as_deref().map(|reason| HeaderValue::from_bytes(reason.as_bytes())).transpose();
        let reason = reason.map_err(|_| ClientError::Reason)?;
        let config = |timeout| {
            Agent::config_builder()
                .http_status_as_error(false)
                // A token is for one server; an operator decides whether another one gets it.
                .max_redirects(0)
                .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
                .user_agent(concat!("flux-resourceset-cli/", env!("CARGO_PKG_VERSION")))
                .timeout_connect(Some(CONNECT))
                .timeout_global(timeout)
                .build()
                .new_agent()
        };
        Ok(Self {
            agent: config(Some(settings.timeout)),
            streams: config(Some(STREAM)),
            base: settings.url.trim().trim_end_matches('/').to_owned(),
            settings,
            reason,
            waiting: Box::new(|_, _| {}),
        })
    }

    /// Calls a function before each pause, with its length and the answer of the server.
    #[must_use]
    pub fn on_waiting(self, waiting: impl Fn(Duration, &str) + 'static) -> Self {
        Self { waiting: Box::new(waiting), ..self }
    }

    /// The address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// What a change would do. Nothing is written.
    pub fn plan(&self, edit: &Edit) -> Result<Plan, ClientError> {
        self.change_at(edit, true)?.json()
    }

    /// Makes a change.
    pub fn make(&self, edit: &Edit) -> Result<Made, ClientError> {
        let answer = self.change_at(edit, false)?;
        let revision = answer.header("x-revision").and_then(|value| value.parse().ok());
        let unclear = |cause: String| ClientError::Uncertain { url: self.base.clone(), cause };
        let revision = revision.ok_or_else(|| unclear("the answer has no revision".to_owned()))?;
        Ok(Made { revision, body: answer.json().map_err(|error| unclear(error.to_string()))? })
    }

    /// Follows the change log after a revision, or from now on.
    pub fn follow(&self, after: Option<u64>) -> Result<Changes, ClientError> {
        let query: Vec<_> = after.map(|after| ("after".to_owned(), after.to_string())).into_iter().collect();
        let ask = Ask { method: "GET", url: self.address(&["changes", "stream"], &query), ..Ask::default() };
        let response = self.send_once(&self.streams, &ask)?;
        if !response.status().is_success() {
            return Err(self.refused(self.received(response)?));
        }
        Ok(Changes::new(Box::new(response.into_body().into_reader()), self.base.clone()))
    }

    pub(crate) fn fetch(&self, path: &[&str], query: Query<'_>) -> Result<Fetched, ClientError> {
        let answer = self.get_from(path, query)?;
        let etag = answer.header("etag").unwrap_or_default().to_owned();
        Ok(Fetched { body: answer.json()?, etag })
    }

    pub(crate) fn get_from(&self, path: &[&str], query: Query<'_>) -> Result<Answer, ClientError> {
        self.send(&Ask { method: "GET", url: self.address(path, query), repeatable: true, ..Ask::default() })
    }

    fn change_at(&self, edit: &Edit, dry_run: bool) -> Result<Answer, ClientError> {
        let path: Vec<&str> = edit.path.iter().map(String::as_str).collect();
        let mut query = edit.query.clone();
        query.extend(dry_run.then(|| ("dry_run".to_owned(), "true".to_owned())));
        query.extend(edit.allow_removals.map(|count| ("allow_removals".to_owned(), count.to_string())));
        query.extend(edit.expected.map(|(revision, _)| ("expected_revision".to_owned(), revision.to_string())));
        let epoch = edit.expected.map(|(_, epoch)| epoch).filter(|epoch| !epoch.is_first());
        query.extend(epoch.map(|epoch| ("expected_epoch".to_owned(), epoch.to_string())));
        let mut headers = vec![("content-type", HeaderValue::from_static(edit.media))];
        if let Some(etag) = &edit.if_match {
            let etag = HeaderValue::from_str(etag).map_err(|_| self.strange("an ETag that cannot be sent back"))?;
            headers.push(("if-match", etag));
        }
        headers.extend(self.reason.clone().map(|reason| ("x-change-reason", reason)));
        self.send(&Ask {
            method: edit.method,
            url: self.address(&path, &query),
            headers,
            body: edit.body.as_ref().map(ToString::to_string),
            writes: true,
            repeatable: dry_run,
        })
    }

    fn address(&self, path: &[&str], query: Query<'_>) -> String {
        let mut url = self.base.clone();
        for part in path {
            url.push('/');
            url.extend(utf8_percent_encode(part, SEGMENT));
        }
        for (at, (name, value)) in query.iter().enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.extend(utf8_percent_encode(name, SEGMENT));
            url.push('=');
            url.extend(utf8_percent_encode(value, SEGMENT));
        }
        url
    }

    /// Sends a request, and retries where the server answers 429 or 503 and sending it twice is safe.
    fn send(&self, ask: &Ask) -> Result<Answer, ClientError> {
        let mut tries = 0;
        loop {
            let answer =
                self.received(self.send_once(&self.agent, ask)?).map_err(|error| self.uncertain(ask, error))?;
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            let pause = answer.header("retry-after").and_then(|value| value.parse().ok()).map(Duration::from_secs);
            let refused = self.refused(answer);
            if tries == self.settings.retries || !ask.may_be_sent_again(&refused) {
                return Err(self.uncertain(ask, refused));
            }
            let pause = pause.unwrap_or(Duration::from_millis(250) * 2_u32.pow(tries.min(8))).min(LONGEST_PAUSE);
            (self.waiting)(pause, &refused.to_string());
            thread::sleep(pause);
            tries += 1;
        }
    }

    fn send_once(&self, agent: &Agent, ask: &Ask) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder().method(ask.method).uri(&ask.url);
        let (first, second) = (&self.settings.read, &self.settings.write);
        // The write token may read too, and on a server with one token that one writes.
        let token = if ask.writes { second.as_ref().or(first.as_ref()) } else { first.as_ref().or(second.as_ref()) };
        if let Some(Token(token)) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let bad = |error: ureq::http::Error| ClientError::Address { url: ask.url.clone(), reason: error.to_string() };
        let sent = match &ask.body {
            Some(body) => agent.run(request.body(body.as_str()).map_err(bad)?),
            None => agent.run(request.body(()).map_err(bad)?),
        };
        sent.map_err(|error| {
            let (url, cause) = (self.base.clone(), cause(&error));
            if ask.writes && !ask.repeatable && was_sent(&error) {
                ClientError::Uncertain { url, cause }
            } else {
                ClientError::Unreachable { url, cause }
            }
        })
    }

    fn received(&self, mut response: Response<Body>) -> Result<Answer, ClientError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.body_mut().with_config().limit(LARGEST).read_to_vec();
        let interrupted =
            |error: ureq::Error| ClientError::Interrupted { url: self.base.clone(), cause: cause(&error) };
        Ok(Answer { url: self.base.clone(), status, headers, body: body.map_err(interrupted)? })
    }

    fn refused(&self, answer: Answer) -> ClientError {
        let problem = serde_json::from_slice::<ProblemDetails>(&answer.body);
        let foreign = |_| {
            let detail = match answer.header("location") {
                Some(place) => format!("{} sends its clients to {place}", self.base),
                None => {
                    format!("{} answers with status {}, not as a flux-resourceset server", self.base, answer.status)
                }
            };
            ProblemDetails::new(answer.status, "", "", &detail, &[])
        };
        ClientError::Refused(Box::new(problem.unwrap_or_else(foreign)))
    }

    /// Only the answer of a flux-resourceset server shows that a change that was sent was not made.
    fn uncertain(&self, ask: &Ask, error: ClientError) -> ClientError {
        let ours = error.problem().is_some_and(|problem| problem.status < 500 || !problem.code.is_empty());
        if !ask.writes || ask.repeatable || ours {
            return error;
        }
        ClientError::Uncertain { url: self.base.clone(), cause: plainly(&error) }
    }

    fn strange(&self, cause: &str) -> ClientError {
        ClientError::Strange { url: self.base.clone(), cause: cause.to_owned() }
    }
}

/// The cause of a failed exchange, as the operating system reports it, or else as the library does.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => "there was no answer in time".to_owned(),
        ureq::Error::HostNotFound => "there is no such host".to_owned(),
        other => other.to_string(),
    }
}

/// Without the address, which the message has already.
fn plainly(error: &ClientError) -> String {
    match error {
        ClientError::Interrupted { cause, .. } | ClientError::Strange { cause, .. } => cause.clone(),
        ClientError::Refused(problem) => format!("status {}", problem.status),
        other => other.to_string(),
    }
}

/// Whether the server may have got the request before it failed.
fn was_sent(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => error.kind() != io::ErrorKind::ConnectionRefused,
        ureq::Error::Timeout(when) => !matches!(when, ureq::Timeout::Connect | ureq::Timeout::Resolve),
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Tls(_) => false,
        _ => true,
    }
}

/// A request.
#[derive(Default)]
struct Ask {
    method: &'static str,
    url: String,
    headers: Vec<(&'static str, HeaderValue)>,
    body: Option<String>,
    writes: bool,
    repeatable: bool,
}

impl Ask {
    /// After these the server has done nothing; after any other 503 it may have done what it was asked. Behind a proxy, 429 may
    /// be the proxy's: then it has not asked the server.
    fn may_be_sent_again(&self, refused: &ClientError) -> bool {
        refused.problem().is_some_and(|problem| {
            let nothing_was_done = matches!(&*problem.code, "busy" | "not-ready");
            problem.status == 429 || (problem.status == 503 && (self.repeatable || nothing_was_done))
        })
    }
}

/// An answer, whatever its status.
pub(crate) struct Answer {
    url: String,
    status: u16,
    headers: header::HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn text(self) -> Result<String, ClientError> {
        String::from_utf8(self.body)
            .map_err(|error| ClientError::Strange { url: self.url.clone(), cause: error.to_string() })
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ClientError::Strange { url: self.url.clone(), cause: error.to_string() })
    }
}
