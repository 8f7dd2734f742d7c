//! All routes, grouped by who calls.

use axum::{
    Router, middleware,
    routing::{MethodRouter, delete as delete_method, get, post, put},
};

use crate::{
    App,
    access::ReadAccess,
    body::BATCH,
    config::Mode,
    failure::{ErrorStatus, Failure},
    handler_threads::run_handler,
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
        explain::explain,
        flux_clusters::flux_clusters,
        flux_inputs::flux_inputs,
        former_dns,
        get::get as get_document,
        health::health,
        history::history,
        list::list,
        metrics::metrics,
        openapi::openapi,
        patch::patch,
        problem_counts::problem_counts,
        problems::problems,
        ready::ready,
        references,
        replace::replace,
        restore::restore,
        revert_change::revert_change,
        revert_document::revert_document,
        store::{accept, store},
        stream::stream,
        type_changes,
        types::types,
    },
    metrics::POLLS,
};

/// The path of the OpenAPI document.
pub(crate) const OPENAPI: &str = "/openapi.yaml";

/// A path and its handlers.
type Route = (&'static str, MethodRouter<App>);

/// For probes, without a token, at every address of the server.
fn probes() -> [Route; 2] {
    [("/health", get(health)), ("/ready", get(ready))]
}

/// For scrapers, without a token.
fn metrics_route() -> Route {
    ("/metrics", get(metrics))
}

/// Every route of a mode, at both addresses. A handler's arguments say which token it needs.
pub(crate) fn routes(mode: Mode) -> impl Iterator<Item = Route> {
    api(mode).into_iter().chain(probes()).chain([metrics_route()])
}

/// What is served at the main address only.
fn api(mode: Mode) -> Vec<Route> {
    let mut routes = vec![
        // Flux Operator, with the read token.
        (POLLS, get(flux_inputs)),
        ("/api/v2/flux/clusters", get(flux_clusters)),
        // Provisioning of clusters, with the read token.
        ("/api/v2/flux/clusters/{cluster_dns}/bootstrap", get(bootstrap)),
        // Operators, with the read token.
        ("/problems", get(problems)),
        ("/problems/counts", get(problem_counts)),
        ("/store", get(store)),
        ("/types/changes", get(type_changes::changes)),
        // Any client, without a token.
        (OPENAPI, get(openapi)),
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
            ("/clusters/{id}/explain/{type}/{ref_id}", get(explain)),
            ("/clusters/{id}/former_dns/{name}", delete_method(former_dns::release)),
            (
                "/clusters/{id}/patches/{component}",
                put(cluster_patches::set).patch(cluster_patches::merge).delete(cluster_patches::remove),
            ),
            ("/clusters/{id}/{type}/{ref_id}", put(references::assign).delete(references::unassign)),
            (BATCH, post(batch)),
            ("/types", get(types)),
            ("/types/accept", post(type_changes::accept)),
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

/// The whole API; without metrics if they are served at the admin address.
pub(crate) fn router(app: App) -> Router {
    let metrics = (!app.has_admin_address).then(metrics_route);
    with_fallbacks(api(app.mode).into_iter().chain(probes()).chain(metrics), app)
}

/// Metrics and probes, for an address that only the operators' network reaches.
pub(crate) fn admin_router(app: App) -> Router {
    with_fallbacks(probes().into_iter().chain([metrics_route()]), app)
}

fn with_fallbacks(routes: impl Iterator<Item = Route>, app: App) -> Router {
    let router = routes.fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), run_handler))
        .with_state(app)
}

async fn unknown_path(_: ReadAccess) -> Failure {
    Failure::not_found()
}

async fn wrong_method(_: ReadAccess) -> Failure {
    Failure::new(ErrorStatus::METHOD_NOT_ALLOWED, "method-not-allowed", "this path does not take this method")
}
