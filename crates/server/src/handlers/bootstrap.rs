//! `GET /api/v2/flux/clusters/{cluster_dns}/bootstrap`: everything that a new cluster needs except the token.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use manifests::Bootstrap;
use model::FieldError;

use super::Segments;
use crate::{
    App,
    access::ReadAccess,
    failure::{ErrorStatus, Failure},
    query::Params,
};

pub(crate) async fn bootstrap(
    access: ReadAccess,
    State(app): State<App>,
    Segments(dns): Segments<String>,
    mut params: Params,
) -> Result<Response, Failure> {
    let api_url = params.parsed("api_url", "a URL such as https://fleet.example.com")?;
    let Some(api_url) = api_url.or_else(|| app.public_url.clone()) else {
        let message = "\"api_url\" is what the cluster calls; it is needed, since PUBLIC_URL is not set";
        return Err(Failure::invalid_query(FieldError::new("/api_url", "required", message)));
    };
    let interval = params.parsed("interval", "a time from 1s to 24h, such as 5m")?.unwrap_or_default();
    let cert_secret = params.parsed("cert_secret", "the name of a Secret")?;
    let flux_instance = params.parsed("flux_instance", "true or false")?.unwrap_or(true);
    params.none_left()?;

    let fleet = access.fleet()?;
    let cluster = fleet.cluster_at(&dns)?;
    if !cluster.is_live() {
        let detail = format!("cluster \"{}\" is decommissioned: what it installs would be told to go", cluster.id());
        return Err(Failure::new(ErrorStatus::CONFLICT, "decommissioned", detail));
    }
    if let Some(path) = fleet.unserved_paths().next() {
        let detail = format!("this server does not serve {path} as the change log records it: see GET /types/changes");
        return Err(Failure::types_changed(detail));
    }
    let identity = serde_json::from_str(cluster.identity()).map_err(Failure::internal)?;
    let bootstrap = Bootstrap { identity, api_url, interval, cert_secret, flux_instance };
    let text = bootstrap.write(&app.registry).map_err(Failure::internal)?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"))], text).into_response())
}
