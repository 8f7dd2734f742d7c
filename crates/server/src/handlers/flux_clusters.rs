//! `GET /api/v2/flux/clusters`: the live clusters, or a part of them, for what provisions them.

use axum::{body::Bytes, extract::State, http::Response};
use fleet::{Part, Shard};
use http_body_util::Full;
use model::{Excerpt, FieldError, ResourceType};

use super::{EmptyAs, selection::labels, send};
use crate::{App, access::ReadAccess, failure::Failure, query::Params};

pub(crate) async fn flux_clusters(
    access: ReadAccess,
    State(app): State<App>,
    mut params: Params,
) -> Result<Response<Full<Bytes>>, Failure> {
    let EmptyAs(empty) = EmptyAs::take(&mut params)?;
    let part = Part {
        environment: params.one("environment")?,
        labels: labels(&mut params)?,
        shard: params.one("shard")?.map(|text| shard(&text)).transpose()?,
    };
    // A misspelt filter must not become a list of everything.
    params.none_left()?;
    let fleet = access.fleet()?;
    let ty = app.registry.by_kind(ResourceType::CLUSTER).ok_or_else(Failure::not_found)?;
    Ok(send(app.limits.lists.compute(|| fleet.cluster_inputs(ty, &part, empty)).await??))
}

fn shard(text: &str) -> Result<Shard, Failure> {
    text.parse().map_err(|error| {
        let message = format!("\"{}\" is not a shard: {error}", Excerpt(text));
        Failure::invalid_query(FieldError::new("/shard", "query", message))
    })
}
