//! All routes, grouped by who calls.

use std::any::Any;

use axum::{
    Router,
    http::StatusCode,
    middleware,
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, get},
};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    App,
    access::ReadAccess,
    failure::Failure,
    handlers::{
        flux_clusters::flux_clusters, flux_inputs::flux_inputs, health::health, metrics::metrics, openapi::openapi,
        problems::problems, ready::ready,
    },
    observe::observe,
};

/// Every route. Who may call it is in what its handler takes.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        // Flux Operator, with the read token.
        ("/api/v2/flux/clusters/{cluster_dns}/{type}", get(flux_inputs)),
        ("/api/v2/flux/clusters", get(flux_clusters)),
        // Operators, with the read token.
        ("/problems", get(problems)),
        // Probes, scrapers and the curious, without a token.
        ("/health", get(health)),
        ("/ready", get(ready)),
        ("/openapi.yaml", get(openapi)),
        ("/metrics", get(metrics)),
    ]
}

/// The whole API.
pub fn router(app: App) -> Router {
    let router = routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

async fn unknown_path(_: ReadAccess) -> Failure {
    Failure::not_found()
}

async fn wrong_method(_: ReadAccess) -> Failure {
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "this path does not take this method")
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::internal(format!("a handler panicked: {}", said.unwrap_or("it did not say why"))).into_response()
}
