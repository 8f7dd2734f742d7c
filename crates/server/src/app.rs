//! What handlers share.

use std::{ops::Deref, sync::Arc};

use axum::body::Bytes;
use fleet::{Reader, Snapshot};
use model::Registry;

use crate::{Clock, access::Tokens, failure::Failure, follower::Status, metrics::Metrics, router};

/// The application's state; cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// The parts of the state.
pub struct Inner {
    pub(crate) fleet: Reader,
    pub(crate) registry: Arc<Registry>,
    pub(crate) status: Arc<Status>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Tokens,
    pub(crate) openapi: Bytes,
    pub(crate) metrics: Metrics,
}

impl App {
    /// Wires the parts together.
    pub fn new(
        fleet: Reader,
        registry: Arc<Registry>,
        status: Arc<Status>,
        clock: Arc<dyn Clock>,
        tokens: Tokens,
        openapi: impl Into<Bytes>,
    ) -> Result<Self, prometheus::Error> {
        let paths: Vec<_> = router::routes().into_iter().map(|(path, _)| path).collect();
        let metrics = Metrics::new(&paths, &registry)?;
        Ok(Self(Arc::new(Inner { fleet, registry, status, clock, tokens, openapi: openapi.into(), metrics })))
    }

    /// The newest picture of the fleet, or the failure to send while there is none.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        self.fleet.snapshot().ok_or_else(Failure::not_ready)
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
