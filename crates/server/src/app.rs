//! What handlers share.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use axum::body::Bytes;
use fleet::{Reader, Snapshot};
use manifests::ApiUrl;
use model::Registry;

use crate::{
    Clock, Follower, Log, Status, StoreStatus, access::Tokens, config::Mode, failure::Failure, metrics::Metrics,
    observe::RequestIds, router,
};

/// The application's state; cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// What the state is made of.
pub struct Parts<'a> {
    /// Sees the newest picture.
    pub fleet: Reader,
    /// Brings it; shares its registry, clock, status and log.
    pub follower: &'a Follower,
    /// What is served.
    pub mode: Mode,
    /// Who may do what.
    pub tokens: Tokens,
    /// The description to serve, if it is not the one that follows from the resource types.
    pub openapi: Option<String>,
    /// What clusters call, if that is known.
    pub public_url: Option<ApiUrl>,
}

/// The state.
pub struct Inner {
    pub(crate) fleet: Reader,
    pub(crate) registry: Arc<Registry>,
    pub(crate) status: Arc<Status>,
    pub(crate) log: Arc<Log>,
    pub(crate) mode: Mode,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Tokens,
    openapi: OnceLock<Bytes>,
    pub(crate) public_url: Option<ApiUrl>,
    pub(crate) metrics: Metrics,
    pub(crate) request_ids: RequestIds,
}

impl App {
    /// Wires the parts together.
    pub fn new(parts: Parts<'_>) -> Result<Self, prometheus::Error> {
        let Parts { fleet, follower, mode, tokens, openapi, public_url } = parts;
        let Follower { registry, clock, status, log, .. } = follower;
        let (registry, clock, status, log) = (registry.clone(), clock.clone(), status.clone(), log.clone());
        let paths: Vec<_> = router::routes(mode).into_iter().map(|(path, _)| path).collect();
        let metrics = Metrics::new(&paths, &registry)?;
        Ok(Self(Arc::new(Inner {
            fleet,
            registry,
            status,
            log,
            mode,
            clock,
            tokens,
            openapi: openapi.map_or_else(OnceLock::new, |text| Bytes::from(text).into()),
            public_url,
            metrics,
            request_ids: RequestIds::new(),
        })))
    }

    /// The newest picture of the fleet, or the failure to send while there is none.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        self.fleet.snapshot().ok_or_else(|| match self.status.store() {
            StoreStatus::Diverged(head) => Failure::store_diverged(&head),
            _ => Failure::not_ready(),
        })
    }

    /// The description of the API. It is written when it is first asked for: a start does not wait for it.
    pub(crate) fn openapi(&self) -> Result<Bytes, Failure> {
        if let Some(text) = self.openapi.get() {
            return Ok(text.clone());
        }
        let text = crate::openapi_document(&self.registry, self.mode).map_err(Failure::internal)?;
        Ok(self.openapi.get_or_init(|| text.into()).clone())
    }

    /// Refuses a log that is away, or that does not continue what is served.
    pub(crate) fn sound(&self) -> Result<(), Failure> {
        match self.status.store() {
            StoreStatus::Starting | StoreStatus::Following => Ok(()),
            StoreStatus::Unavailable => Err(Failure::store_unavailable().because("the log cannot be read")),
            StoreStatus::Diverged(head) => Err(Failure::store_diverged(&head)),
        }
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
