//! The metrics for Prometheus.
//!
//! A poll takes no lock: the counters and histograms of all routes are created at the start, in a map that never
//! changes, and polls are counted in atomic counters of each cluster. Gauges are computed at each scrape.

use std::{collections::HashMap, time::Duration};

use axum::http::{Method, StatusCode};
use fleet::{Rule, Snapshot};
use jiff::Timestamp;
use model::Registry;
use prometheus::{
    Encoder as _, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, TextEncoder, core::Collector,
};

use crate::StoreStatus;

const NAMESPACE: &str = "flux_resourceset";

/// From 50 µs, which a poll should take, to 10 s, which nothing should.
const BUCKETS: [f64; 12] = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

/// The counters of one route.
#[derive(Clone)]
struct Route {
    latency: Histogram,
    /// `GET` requests that were answered with 200, by far the most.
    successful_gets: IntCounter,
}

pub(crate) struct Metrics {
    exposed: prometheus::Registry,
    requests: IntCounterVec,
    routes: HashMap<&'static str, Route>,
    types: Vec<String>,
    revision: IntGauge,
    clusters: IntGauge,
    age: Gauge,
    ready: IntGauge,
    store_up: IntGauge,
    store_diverged: IntGauge,
    problems: IntGaugeVec,
    /// Sets of documents of past revisions that were read from the store.
    pub(crate) past_loads: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(paths: &[&'static str], registry: &Registry) -> Result<Self, prometheus::Error> {
        let exposed = prometheus::Registry::new();
        let options = |name: &str, help: &str| Opts::new(name, help).namespace(NAMESPACE);
        let labels = ["method", "route", "status"];
        let requests = IntCounterVec::new(options("http_requests_total", "Requests answered."), &labels)?;
        let latency = HistogramOpts::new("http_request_duration_seconds", "Time to answer a request.");
        let latency = HistogramVec::new(latency.namespace(NAMESPACE).buckets(BUCKETS.to_vec()), &["route"])?;
        let route = |path: &str| -> Result<Route, prometheus::Error> {
            let successful_gets = requests.get_metric_with_label_values(&["GET", path, "200"])?;
            Ok(Route { latency: latency.get_metric_with_label_values(&[path])?, successful_gets })
        };
        let mut routes = HashMap::new();
        for path in paths.iter().copied().chain([UNMATCHED]) {
            routes.insert(path, route(path)?);
        }
        let metrics = Self {
            requests,
            routes,
            types: registry.types().map(|ty| ty.path.clone()).collect(),
            revision: IntGauge::with_opts(options("revision", "Revision of the served snapshot."))?,
            clusters: IntGauge::with_opts(options("clusters", "Live clusters in the served snapshot."))?,
            age: Gauge::with_opts(options(
                "picture_age_seconds",
                "Time since the served snapshot was last known to be at the head of the change log, or since the start.",
            ))?,
            ready: IntGauge::with_opts(options("ready", "1 while a snapshot is served."))?,
            store_up: IntGauge::with_opts(options("store_up", "1 while the change log of the store is followed."))?,
            store_diverged: IntGauge::with_opts(options(
                "store_diverged",
                "1 while the change log diverged from the served snapshot, so that it is not followed.",
            ))?,
            problems: IntGaugeVec::new(options("problems", "Broken rules in stored documents."), &["rule"])?,
            past_loads: IntCounterVec::new(
                options("past_loads_total", "Sets of documents of a past revision that were read from the store."),
                &["documents"],
            )?,
            exposed,
        };
        let collectors: [Box<dyn Collector>; 10] = [
            Box::new(metrics.requests.clone()),
            Box::new(latency),
            Box::new(metrics.revision.clone()),
            Box::new(metrics.clusters.clone()),
            Box::new(metrics.age.clone()),
            Box::new(metrics.ready.clone()),
            Box::new(metrics.store_up.clone()),
            Box::new(metrics.store_diverged.clone()),
            Box::new(metrics.problems.clone()),
            Box::new(metrics.past_loads.clone()),
        ];
        for collector in collectors {
            metrics.exposed.register(collector)?;
        }
        Ok(metrics)
    }

    /// Counts an answered request. A path without a route counts as [`UNMATCHED`].
    pub(crate) fn answered(&self, path: &str, method: &Method, status: StatusCode, took: Duration) {
        let Some((path, route)) = self.routes.get_key_value(path).or_else(|| self.routes.get_key_value(UNMATCHED))
        else {
            return;
        };
        route.latency.observe(took.as_secs_f64());
        if *method == Method::GET && status == StatusCode::OK {
            route.successful_gets.inc();
        } else {
            self.requests.with_label_values(&[method_label(method), path, status.as_str()]).inc();
        }
    }

    /// All metrics in Prometheus' text format. `fleet` is the served snapshot, and how often each rule is broken.
    pub(crate) fn expose(
        &self,
        fleet: Option<(&Snapshot, [(Rule, u64); Rule::ALL.len()])>,
        store: StoreStatus,
        refreshes: u64,
        age: Duration,
        now: Timestamp,
    ) -> Result<String, prometheus::Error> {
        self.store_up.set(i64::from(store == StoreStatus::Following));
        self.store_diverged.set(i64::from(matches!(store, StoreStatus::Diverged(_))));
        self.ready.set(i64::from(fleet.is_some()));
        self.age.set(age.as_secs_f64());
        if let Some((fleet, problems)) = fleet {
            self.revision.set(count(fleet.revision().0));
            self.clusters.set(count(fleet.clusters().filter(|cluster| cluster.is_live()).count() as u64));
            for (rule, broken) in problems {
                self.problems.with_label_values(&[rule.name()]).set(count(broken));
            }
        }
        let mut families = self.exposed.gather();
        let text = "How often the served snapshot was compared with the head of the change log, with any outcome.";
        let counter = IntCounter::with_opts(Opts::new("store_refreshes_total", text).namespace(NAMESPACE))?;
        counter.inc_by(refreshes);
        families.extend(counter.collect());
        if let Some((fleet, _)) = fleet {
            families.extend(self.poll_metrics(fleet, now)?);
        }
        // The encoder rejects a family without members, which is what the polls are before the first one.
        families.retain(|family| !family.get_metric().is_empty());
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text)?;
        String::from_utf8(text).map_err(|error| prometheus::Error::Msg(error.to_string()))
    }

    /// The polls of the clusters that are in the fleet now.
    fn poll_metrics(
        &self,
        fleet: &Snapshot,
        now: Timestamp,
    ) -> Result<Vec<prometheus::proto::MetricFamily>, prometheus::Error> {
        let now = now.as_second();
        let options =
            Opts::new("polls_total", "Polls of clusters in the fleet, by cluster and type.").namespace(NAMESPACE);
        let counter = IntCounterVec::new(options, &["cluster", "type"])?;
        let text =
            "When a live cluster last polled; if it has not, when this server first exported this metric for it.";
        let options = Opts::new("cluster_last_poll_timestamp_seconds", text).namespace(NAMESPACE);
        let last = IntGaugeVec::new(options, &["cluster"])?;
        for cluster in fleet.clusters() {
            let polls = &cluster.polls;
            if cluster.is_live() {
                last.with_label_values(&[cluster.id().as_str()]).set(polls.last(now));
            } else {
                // It may be restored; the wait for its next poll starts then.
                polls.wait(now);
            }
            for (count, path) in polls.counts().zip(&self.types) {
                if count > 0 {
                    counter.with_label_values(&[cluster.id().as_str(), path]).inc_by(count);
                }
            }
        }
        Ok(counter.collect().into_iter().chain(last.collect()).collect())
    }
}

/// The route of polls.
pub(crate) const POLLS: &str = "/api/v2/flux/clusters/{cluster_dns}/{type}";

/// The route of requests that match none.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Methods are free text; only the known ones become labels.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
