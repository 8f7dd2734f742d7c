//! All routes, grouped by who calls.

use std::any::Any;

use axum::{
    Router,
    http::StatusCode,
    middleware,
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, get, post, put},
};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    App,
    access::ReadAccess,
    config::Mode,
    failure::Failure,
    handlers::{
        batch::batch,
        bootstrap::bootstrap,
        bulk_patch::bulk_patch,
        change::change,
        changes::changes,
        cluster_inputs::cluster_inputs,
        cluster_patches,
        create::create,
        delete::delete,
        flux_clusters::flux_clusters,
        flux_inputs::flux_inputs,
        get::get as get_document,
        health::health,
        history::history,
        list::list,
        metrics::metrics,
        openapi::openapi,
        patch::patch,
        problems::problems,
        ready::ready,
        references,
        replace::replace,
        restore::restore,
        revert_change::revert_change,
        revert_document::revert_document,
        store::{accept, store},
        stream::stream,
        types::types,
    },
    metrics::POLLS,
    observe::observe,
};

/// Every route of a mode. Who may call it is in what its handler takes.
pub(crate) fn routes(mode: Mode) -> Vec<(&'static str, MethodRouter<App>)> {
    let mut routes = vec![
        // Flux Operator, with the read token.
        (POLLS, get(flux_inputs)),
        ("/api/v2/flux/clusters", get(flux_clusters)),
        // Whoever provisions clusters, with the read token.
        ("/api/v2/flux/clusters/{cluster_dns}/bootstrap", get(bootstrap)),
        // Operators, with the read token.
        ("/problems", get(problems)),
        ("/store", get(store)),
        // Probes, scrapers and the curious, without a token.
        ("/health", get(health)),
        ("/ready", get(ready)),
        ("/openapi.yaml", get(openapi)),
        ("/metrics", get(metrics)),
    ];
    if mode == Mode::Crud {
        routes.extend([
            // Operators: reading with the read token, writing with the write token.
            ("/{type}", get(list).post(create).patch(bulk_patch)),
            ("/{type}/{id}", get(get_document).put(replace).patch(patch).delete(delete)),
            ("/{type}/{id}/history", get(history)),
            ("/{type}/{id}/revert", post(revert_document)),
            ("/clusters/{id}/restore", post(restore)),
            ("/clusters/{id}/inputs/{type}", get(cluster_inputs)),
            (
                "/clusters/{id}/patches/{component}",
                put(cluster_patches::set).patch(cluster_patches::merge).delete(cluster_patches::remove),
            ),
            ("/clusters/{id}/{type}/{ref_id}", put(references::assign).delete(references::unassign)),
            ("/batch", post(batch)),
            ("/types", get(types)),
            ("/store/accept", post(accept)),
            // Auditors, with the read token; reverting with the write token.
            ("/changes", get(changes)),
            ("/changes/stream", get(stream)),
            ("/changes/{revision}", get(change)),
            ("/changes/{revision}/revert", post(revert_change)),
        ]);
    }
    routes
}

/// The whole API.
pub fn router(app: App) -> Router {
    let router =
        routes(app.mode).into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
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
