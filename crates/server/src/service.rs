//! The service of every connection: it answers polls, gives everything else to the router, and observes both.
//!
//! A poll as Flux Operator sends it is answered before the router, by the function that the router's handler calls too
//! ([`PollRequest::answer`]): the response is the same, and the detour through routes, layers and extractors is saved. What
//! is unusual about a request in any way is left to the router.

use std::{convert::Infallible, net::SocketAddr, panic::AssertUnwindSafe};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::MatchedPath,
    http::{Request, Response},
    response::IntoResponse as _,
};
use futures_util::future::{BoxFuture, Either, Ready, ready};
use http_body_util::{Either as EitherBody, Full};
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;
use tracing::Instrument as _;

use crate::{
    App,
    failure::Failure,
    handlers::PollRequest,
    metrics::{POLLS, UNMATCHED},
    observe::Observation,
    router::{admin_router, router},
};

/// Answers the requests of one connection.
#[derive(Clone)]
pub struct ApiService {
    app: App,
    router: TowerToHyperService<Router>,
    client: SocketAddr,
    answers_polls: bool,
}

/// A poll is answered as a whole; what the router answers may be a stream.
type ResponseBody = EitherBody<Full<Bytes>, Body>;

impl ApiService {
    /// The whole API: what makes the service of a connection from the address of its client.
    pub fn api(app: &App) -> impl Fn(SocketAddr) -> Self + use<> {
        Self::with(app, router(app.clone()), true)
    }

    /// Metrics and probes only.
    pub fn admin(app: &App) -> impl Fn(SocketAddr) -> Self + use<> {
        Self::with(app, admin_router(app.clone()), false)
    }

    fn with(app: &App, router: Router, answers_polls: bool) -> impl Fn(SocketAddr) -> Self + use<> {
        let (app, router) = (app.clone(), TowerToHyperService::new(router));
        move |client| Self { app: app.clone(), router: router.clone(), client, answers_polls }
    }

    /// The response to a poll that needs no router.
    fn poll(&self, request: &Request<Incoming>) -> Option<Response<ResponseBody>> {
        let poll = PollRequest::from_request(&self.app, request).filter(|_| self.answers_polls)?;
        let answer = std::panic::catch_unwind(AssertUnwindSafe(|| poll.answer(&self.app)));
        Some(match answer.unwrap_or_else(|panic| Err(Failure::panicked(&*panic))) {
            Ok(response) => response.map(EitherBody::Left),
            Err(failure) => failure.into_response().map(EitherBody::Right),
        })
    }
}

impl Service<Request<Incoming>> for ApiService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future =
        Either<Ready<Result<Self::Response, Self::Error>>, BoxFuture<'static, Result<Self::Response, Self::Error>>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let observation = Observation::begin(&self.app, &request, self.client);
        if let Some(response) = self.poll(&request) {
            return Either::Left(ready(Ok(observation.finish(&self.app, POLLS, response))));
        }
        request.extensions_mut().insert(observation.request_id());
        let span = observation.span();
        let (app, routed) = (self.app.clone(), span.in_scope(|| self.router.call(request)));
        let respond = async move {
            let mut response = routed.await?;
            let path = response.extensions_mut().remove::<MatchedPath>();
            let route = path.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
            Ok(observation.finish(&app, route, response).map(EitherBody::Right))
        };
        Either::Right(Box::pin(respond.instrument(span)))
    }
}
