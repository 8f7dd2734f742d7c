//! The way in. A poll that can be answered at once is: one lookup, and bytes out. Everything else goes to the router.
//!
//! Polls are nearly all that a fleet asks for. The router, its layers and its extractors would take longer over one than
//! gathering the answer does: they clone, box, and copy the path, the query and the route, to be ready for any request.
//! So a poll as Flux Operator sends it is taken apart here by hand, without an allocation before the answer itself. Only a
//! good answer is given here. What is odd or wrong in any way, a missing token as well as a cluster that nobody knows, is
//! for the router to say: there is one place where requests fail.

use std::{
    convert::Infallible,
    future::{Ready, ready},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Method, Request, Response, header},
};
use fleet::Empty;
use futures_util::future::{Either as Way, MapOk, TryFutureExt as _};
use http_body_util::{Either, Full};
use hyper::{body::Incoming, service::Service};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};

use crate::{
    App,
    handlers::{Encoding, poll_answer},
    observe,
};

/// The body of an answer: whole, or whatever the router makes.
type Answer = Either<Full<Bytes>, Body>;

/// Everything that can be asked.
#[derive(Clone)]
pub struct Front {
    app: App,
    router: TowerToHyperService<Router>,
}

impl Front {
    /// Polls by the short way, and all else by the router's.
    #[must_use]
    pub fn new(app: App, router: Router) -> Self {
        Self { app, router: TowerToHyperService::new(router) }
    }

    /// The answer to a poll, if there is nothing to say against it.
    fn poll(&self, request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
        let (app, uri) = (&self.app, request.uri());
        if request.method() != Method::GET || request.headers().contains_key(header::CONTENT_LENGTH) {
            return None;
        }
        let (dns, path) = uri.path().strip_prefix("/api/v2/flux/clusters/")?.split_once('/')?;
        let empty = match uri.query() {
            None => Empty::Bare,
            Some("empty=explicit") => Empty::Explicit,
            Some(_) => return None,
        };
        let start = app.clock.uptime();
        app.tokens.allow(request.headers())?;
        let ty = app.registry.by_path(path)?;
        let fleet = app.fleet.newest();
        let fleet = fleet.as_ref()?;
        let cluster = fleet.cluster_at(dns).ok()?;
        let encoding = Encoding::asked(request.headers());
        let mut response = poll_answer(fleet, cluster, ty, empty, encoding).ok()?;
        let now = app.clock.now();
        cluster.polls.count(ty, now.as_second());
        response.headers_mut().insert(observe::REQUEST_ID, app.request_ids.of(request.headers(), now));
        app.metrics.answered_poll(app.clock.uptime().saturating_sub(start));
        Some(response)
    }
}

type Routed = MapOk<TowerToHyperServiceFuture<Router, Request<Incoming>>, fn(Response<Body>) -> Response<Answer>>;

impl Service<Request<Incoming>> for Front {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Way<Ready<Result<Response<Answer>, Infallible>>, Routed>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if let Some(response) = self.poll(&request) {
            return Way::Left(ready(Ok(response.map(Either::Left))));
        }
        let to_answer: fn(Response<Body>) -> Response<Answer> = |response| response.map(Either::Right);
        Way::Right(self.router.call(request).map_ok(to_answer))
    }
}
