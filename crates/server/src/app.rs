//! The state that all handlers share.

use std::{ops::Deref, sync::Arc};

use axum::body::Bytes;
use fleet::{Reader, Rule, Snapshot};
use manifests::ApiUrl;
use model::Registry;
use tokio::{sync::OnceCell, task::block_in_place};

use crate::{
    ChangeLog, Clock, Follower, Status, StoreStatus,
    access::{GuardedFleet, Tokens},
    config::Mode,
    failure::Failure,
    former_polls::FormerPolls,
    handlers::Scrapes,
    large_polls::LargePolls,
    metrics::Metrics,
    observe::RequestIds,
    past_documents::PastDocuments,
    request_limits::RequestLimits,
    router,
    runtimes::RuntimeHandles,
};

/// The application's state; cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// The parts of the state.
pub struct Parts<'a> {
    /// Reads the served snapshot.
    pub fleet: Reader,
    /// Publishes snapshots. The application uses its registry, clock, status and change log too.
    pub follower: &'a Follower,
    /// What is served.
    pub mode: Mode,
    /// Who may do what.
    pub tokens: Tokens,
    /// The OpenAPI document to serve, if it is not the one that is derived from the resource types.
    pub openapi: Option<String>,
    /// The URL under which clusters call this server, if it is known.
    pub public_url: Option<ApiUrl>,
    /// Whether metrics are served at the admin address and not at the main one.
    pub has_admin_address: bool,
    /// The runtimes on which handlers run.
    pub runtimes: RuntimeHandles,
}

/// The state.
pub struct Inner {
    pub(crate) fleet: GuardedFleet,
    pub(crate) registry: Arc<Registry>,
    pub(crate) status: Arc<Status>,
    pub(crate) change_log: Arc<ChangeLog>,
    pub(crate) mode: Mode,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Tokens,
    openapi: OnceCell<Bytes>,
    pub(crate) public_url: Option<ApiUrl>,
    pub(crate) has_admin_address: bool,
    pub(crate) runtimes: RuntimeHandles,
    pub(crate) metrics: Metrics,
    pub(crate) request_ids: RequestIds,
    pub(crate) former_polls: FormerPolls,
    pub(crate) limits: RequestLimits,
    pub(crate) large_polls: LargePolls,
    pub(crate) past: PastDocuments,
    pub(crate) scrapes: Scrapes,
}

impl App {
    /// Wires the parts together.
    pub fn new(parts: Parts<'_>) -> Result<Self, prometheus::Error> {
        let Parts { fleet, follower, mode, tokens, openapi, public_url, has_admin_address, runtimes } = parts;
        let Follower { registry, clock, status, change_log, .. } = follower;
        let (registry, clock, status, change_log) =
            (registry.clone(), clock.clone(), status.clone(), change_log.clone());
        let paths: Vec<_> = router::routes(mode).map(|(path, _)| path).collect();
        let metrics = Metrics::new(&paths, &registry)?;
        let past = PastDocuments::new(metrics.past_loads.clone());
        Ok(Self(Arc::new(Inner {
            fleet: GuardedFleet::new(fleet),
            registry,
            status,
            change_log,
            mode,
            clock,
            tokens,
            openapi: OnceCell::new_with(openapi.map(Bytes::from)),
            public_url,
            has_admin_address,
            runtimes,
            metrics,
            request_ids: RequestIds::new(),
            former_polls: FormerPolls::default(),
            limits: RequestLimits::default(),
            large_polls: LargePolls::default(),
            past,
            scrapes: Scrapes::default(),
        })))
    }

    /// Why no snapshot is served.
    pub(crate) fn no_snapshot(&self) -> Failure {
        match self.status.store() {
            StoreStatus::Diverged(head) => Failure::store_diverged(&head),
            _ => Failure::not_ready(),
        }
    }

    /// How often each rule is broken: by the documents of a snapshot, the resource types of this server, and polls under former
    /// DNS names.
    pub(crate) fn problem_counts(&self, fleet: &Snapshot) -> [(Rule, u64); Rule::ALL.len()] {
        Rule::ALL.map(|rule| {
            let count = match rule {
                Rule::TypesChanged => fleet.type_problems().len() as u64,
                Rule::FormerDnsPolled => self.former_polls.count(fleet, self.clock.now()),
                _ => fleet.problem_count(rule),
            };
            (rule, count)
        })
    }

    /// The OpenAPI document. It is generated at the first request for it, so that a start does not wait for it.
    pub(crate) async fn openapi(&self) -> Result<Bytes, Failure> {
        let generate = async || {
            let text = block_in_place(|| crate::openapi_document(&self.registry, self.mode));
            text.map(Bytes::from).map_err(Failure::internal)
        };
        self.openapi.get_or_try_init(generate).await.cloned()
    }

    /// Fails while the store is unavailable or the change log diverged from the served snapshot.
    pub(crate) fn ensure_healthy(&self) -> Result<(), Failure> {
        match self.status.store() {
            StoreStatus::Starting | StoreStatus::Following => Ok(()),
            StoreStatus::Unavailable => Err(Failure::store_unavailable().because("the change log cannot be read")),
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
