//! `GET /api/v2/flux/clusters/{cluster_dns}/{type}`: what a cluster's Flux Operator polls.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, Response, StatusCode, header},
};
use fleet::{Cluster, Empty, Packed, Refusal, Snapshot};
use http_body_util::Full;
use model::ResourceType;

use super::{EmptyAs, Segments, answers::send_zipped, send};
use crate::{App, access::ReadAccess, failure::Failure};

/// Why nothing is served under a path: only the change log has it and this server's files do not, or neither has it.
fn not_served(fleet: &Snapshot, path: String) -> Failure {
    if fleet.undeclared_paths().any(|undeclared| undeclared == path) {
        let detail = format!("the change log serves a type as \"{path}\", and this server's files do not");
        return Failure::types_changed(detail);
    }
    let detail = format!("no resource type is served as \"{}\"", model::Excerpt(path));
    Failure::new(StatusCode::NOT_FOUND, "unknown-type", detail)
}

pub(crate) async fn flux_inputs(
    _: ReadAccess,
    State(app): State<App>,
    Segments((dns, path)): Segments<(String, String)>,
    EmptyAs(empty): EmptyAs,
    headers: HeaderMap,
) -> Result<Response<Full<Bytes>>, Failure> {
    let fleet = app.snapshot()?;
    let ty = app.registry.by_path(&path).ok_or_else(|| not_served(&fleet, path))?;
    let cluster = fleet.cluster_at(&dns)?;
    // Refused or not, the cluster has polled.
    let now = app.clock.now().as_second();
    cluster.polls.count(ty, now);
    app.former_polls.note(cluster, &dns, now);
    Ok(match poll_answer(&fleet, cluster, ty, empty, Encoding::asked(&headers))? {
        Packed::Plain(answer) => send(app.large_polls.send(answer)?),
        Packed::Zipped(answer) => send_zipped(app.large_polls.send(answer)?),
    })
}

/// How an answer may be encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    /// What a client asks for.
    fn asked(headers: &HeaderMap) -> Self {
        let asked = headers.get_all(header::ACCEPT_ENCODING).iter();
        asked.filter_map(|value| value.to_str().ok()).fold(Self::Identity, Self::or)
    }

    /// This, or the encoding of an `Accept-Encoding` header: gzip, if it is named with a quality that is not zero.
    pub(crate) fn or(self, asked: &str) -> Self {
        let names_gzip = |part: &str| {
            let (coding, quality) = part.split_once(';').unwrap_or((part, ""));
            let zero = quality.trim().strip_prefix("q=").is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
            coding.trim().eq_ignore_ascii_case("gzip") && !zero
        };
        if asked.split(',').any(names_gzip) { Self::Gzip } else { self }
    }
}

/// The answer to a poll, as the client wants it.
pub(crate) fn poll_answer(
    fleet: &Snapshot,
    cluster: &Cluster,
    ty: &ResourceType,
    empty: Empty,
    encoding: Encoding,
) -> Result<Packed, Refusal> {
    match encoding {
        Encoding::Identity => fleet.inputs(cluster, ty, empty).map(Packed::Plain),
        Encoding::Gzip => fleet.packed_inputs(cluster, ty, empty),
    }
}
