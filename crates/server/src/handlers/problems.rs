//! `GET /problems`: what is wrong with documents that are already there, filtered and in pages.
//!
//! A fleet may have hundreds of thousands of problems, so there is always a page: the texts of no others are made.

use api::DocumentProblem;
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header::LINK},
    response::{IntoResponse as _, Response},
};
use fleet::{Problem, ProblemFilter, Rule, Snapshot};
use model::Id;

use super::changes;
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

/// How many problems a page has where nothing else is asked for, and at most.
const PAGE: u64 = 1_000;
const MAX_PAGE: u64 = 10_000;

pub(crate) async fn problems(
    access: ReadAccess,
    State(app): State<App>,
    uri: Uri,
    mut params: Params,
) -> Result<Response, Failure> {
    let fleet = access.fleet()?;
    let rule = params.word("rule", &Rule::ALL.map(Rule::name))?;
    let filter = ProblemFilter {
        rule: rule.and_then(|name| Rule::from_name(&name)),
        kind: changes::kind(&fleet, params.one("kind")?)?,
        id: params.parsed::<Id>("id", "an id")?,
    };
    let limit = params.count("limit")?.unwrap_or(PAGE).min(MAX_PAGE);
    let offset = params.count("offset")?.unwrap_or_default();
    params.none_left()?;
    // A page of a fleet full of problems takes a while.
    let (page, total) = app.limits.lists.compute(|| page(&app, &fleet, &filter, offset, limit)).await?;
    let mut headers = HeaderMap::from_iter([(TOTAL, HeaderValue::from(total))]);
    let shown = page.len() as u64;
    if shown > 0 && offset + shown < total {
        headers.insert(LINK, next_page(&uri, offset + shown, limit)?);
    }
    Ok((headers, Json(page)).into_response())
}

fn described(Problem { kind, id, pointer, rule, message }: Problem) -> DocumentProblem {
    DocumentProblem { kind, id, pointer, rule: rule.name().into(), message }
}

/// Problems from an offset on, and how many there are.
fn page(app: &App, fleet: &Snapshot, filter: &ProblemFilter, offset: u64, limit: u64) -> (Vec<DocumentProblem>, u64) {
    let mut page = fleet.problem_page(filter, offset, limit);
    // Problems of no stored document come last. There are few.
    let types = fleet.type_problems().into_iter();
    let former = app.former_polls.problems(fleet, app.clock.now());
    let others: Vec<Problem> = types.chain(former).filter(|problem| filter.accepts(problem)).collect();
    let passed = usize::try_from(offset.saturating_sub(page.total)).unwrap_or(usize::MAX);
    let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(page.problems.len());
    let total = page.total + others.len() as u64;
    page.problems.extend(others.into_iter().skip(passed).take(room));
    (page.problems.into_iter().map(described).collect(), total)
}

/// The same query, from another offset on.
fn next_page(uri: &Uri, offset: u64, limit: u64) -> Result<HeaderValue, Failure> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let is_filter = |pair: &&str| !pair.is_empty() && !pair.starts_with("offset=") && !pair.starts_with("limit=");
    let filters: String = pairs.filter(is_filter).flat_map(|pair| [pair, "&"]).collect();
    let next = format!("<{}?{filters}offset={offset}&limit={limit}>; rel=\"next\"", uri.path());
    HeaderValue::try_from(next).map_err(Failure::internal)
}
