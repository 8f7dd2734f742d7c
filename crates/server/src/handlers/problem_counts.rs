//! `GET /problems/counts`: how many problems there are, in all and by rule. No text of a problem is written for it.

use api::ProblemCounts;
use axum::{Json, extract::State};

use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn problem_counts(
    access: ReadAccess,
    State(app): State<App>,
    params: Params,
) -> Result<Json<ProblemCounts>, Failure> {
    params.none_left()?;
    let fleet = access.fleet()?;
    let counts = app.problem_counts(&fleet);
    let total = counts.iter().map(|(_, count)| count).sum();
    let rules = counts.iter().map(|(rule, count)| (rule.name().into(), *count)).collect();
    Ok(Json(ProblemCounts { total, rules }))
}
