//! `GET /api/v2/flux/clusters/{cluster_dns}/{type}`: what a cluster's Flux Operator polls.
//!
//! [`PollRequest::answer`] is the only place where a poll is answered. The service in front of the router calls it for requests
//! as Flux Operator sends them; the handler calls it for all others, such as those with an escaped path or a repeated query.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, Request, Response, header},
};
use fleet::{Empty, Packed, Snapshot};
use http_body_util::Full;
use hyper::body::Body;

use super::{EmptyAs, Segments, answers::send_zipped, send};
use crate::{
    App,
    access::ReadAccess,
    failure::{ErrorStatus, Failure},
};

/// What a poll asks for.
pub(crate) struct PollRequest<'a> {
    access: Result<ReadAccess<&'a App>, Failure>,
    dns: &'a str,
    /// The last segment of the path, which names a resource type.
    type_path: &'a str,
    empty: Empty,
    accepts_gzip: bool,
}

impl<'a> PollRequest<'a> {
    /// A request as Flux Operator sends it; none, if it is unusual in any way or not a poll.
    pub(crate) fn from_request<B: Body>(app: &'a App, request: &'a Request<B>) -> Option<Self> {
        let (uri, headers) = (request.uri(), request.headers());
        let (dns, type_path) = uri.path().strip_prefix("/api/v2/flux/clusters/")?.split_once('/')?;
        let is_plain = request.method() == Method::GET && request.body().is_end_stream() && !dns.contains('%');
        if !is_plain || app.registry.by_path(type_path).is_none() {
            return None;
        }
        let empty = match uri.query() {
            None => Empty::Bare,
            Some("empty=explicit") => Empty::Explicit,
            Some(_) => return None,
        };
        let access = ReadAccess::from_headers(app, headers);
        Some(Self { access, dns, type_path, empty, accepts_gzip: accepts_gzip(headers) })
    }

    /// The inputs of the cluster, or the failure to send. A poll of a known cluster is counted even if it is refused.
    pub(crate) fn answer(self, app: &App) -> Result<Response<Full<Bytes>>, Failure> {
        let Self { access, dns, type_path, empty, accepts_gzip } = self;
        let access = access?;
        let fleet = access.newest();
        let Some(fleet) = fleet.as_ref() else { return Err(app.no_snapshot()) };
        let ty = app.registry.by_path(type_path).ok_or_else(|| not_served(fleet, type_path))?;
        let cluster = fleet.cluster_at(dns)?;
        let now = app.clock.now().as_second();
        cluster.polls.count(ty, now);
        app.former_polls.note(cluster, dns, now);
        let answer = if accepts_gzip {
            fleet.packed_inputs(cluster, ty, empty)?
        } else {
            Packed::Plain(fleet.inputs(cluster, ty, empty)?)
        };
        Ok(match answer {
            Packed::Plain(answer) => send(app.large_polls.send(answer)?),
            Packed::Zipped(answer) => send_zipped(app.large_polls.send(answer)?),
        })
    }
}

pub(crate) async fn flux_inputs(
    access: ReadAccess,
    State(app): State<App>,
    Segments((dns, type_path)): Segments<(String, String)>,
    EmptyAs(empty): EmptyAs,
    headers: HeaderMap,
) -> Result<Response<Full<Bytes>>, Failure> {
    let accepts_gzip = accepts_gzip(&headers);
    PollRequest { access: Ok(access.borrowed()), dns: &dns, type_path: &type_path, empty, accepts_gzip }.answer(&app)
}

/// Why nothing is served under a path: the change log knows a type there and this server's files do not, or there is none.
fn not_served(fleet: &Snapshot, path: &str) -> Failure {
    if fleet.undeclared_paths().any(|undeclared| undeclared == path) {
        let detail = format!("the change log serves a type as \"{path}\", and this server's files do not");
        return Failure::types_changed(detail);
    }
    let detail = format!("no resource type is served as \"{}\"", model::Excerpt(path));
    Failure::new(ErrorStatus::NOT_FOUND, "unknown-type", detail)
}

/// Whether a client accepts gzip: it is named in an `Accept-Encoding`, and not with a quality of zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let names_gzip = |part: &str| {
        let (coding, quality) = part.split_once(';').unwrap_or((part, ""));
        let is_zero = quality.trim().strip_prefix("q=").is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        coding.trim().eq_ignore_ascii_case("gzip") && !is_zero
    };
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(names_gzip)
}
