//! What each cluster gets, seen from outside.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod dependencies;
mod explain;
mod gzip;
mod laws;
mod problems;
mod snapshot;

use std::sync::{Arc, LazyLock};

use fleet::{Empty, Refusal, Snapshot};
use jiff::Timestamp;
use model::{Body, Change, Id, Op, Origin, Registry, Value, Write};
use serde_json::json;

/// Read once: compiling schemas is the slow part of a small fleet.
static BUILT_IN: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::built_in().unwrap()));

/// A write from the type's list, the id and the body; a body in a list retires, `false` removes.
fn write(registry: &Registry, list: &str, id: &str, body: &Value) -> Write {
    let op = match body {
        Value::Array(last) => Op::Retire(Body::from_fields(last[0].as_object().unwrap())),
        Value::Bool(false) => Op::Remove,
        Value::Object(fields) => Op::Put(Body::from_fields(fields)),
        other => panic!("{other} is no write"),
    };
    let kind = registry.by_name(list).map_or_else(|| list.into(), |ty| ty.kind.clone());
    Write { kind, id: Id::parse(id).unwrap(), op }
}

fn change(fleet: &Snapshot, writes: Vec<Write>) -> Change {
    let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
    Change::after(fleet.point(), origin, writes)
}

/// The fleet after one more change: `{"namespaces": {"a": {…}}}`.
fn after(fleet: &Snapshot, documents: &Value) -> Snapshot {
    let mut writes = Vec::new();
    for (list, documents) in documents.as_object().unwrap() {
        for (id, body) in documents.as_object().unwrap() {
            writes.push(write(fleet.registry(), list, id, body));
        }
    }
    fleet.apply(&change(fleet, writes)).unwrap()
}

fn fleet_of(documents: &Value) -> Snapshot {
    after(&Snapshot::empty(BUILT_IN.clone()), documents)
}

fn poll_as(fleet: &Snapshot, dns: &str, path: &str, empty: Empty) -> Result<Value, Refusal> {
    let cluster = fleet.cluster_at(dns)?;
    let answer = fleet.inputs(cluster, fleet.registry().by_path(path).unwrap(), empty)?;
    Ok(serde_json::from_slice(answer.as_ref()).unwrap())
}

fn poll(fleet: &Snapshot, dns: &str, path: &str) -> Result<Value, Refusal> {
    poll_as(fleet, dns, path, Empty::Bare)
}

fn cluster(dns: &str, rest: &Value) -> Value {
    let mut fields = json!({"cluster_name": dns.split('.').next(), "cluster_dns": dns, "environment": "dev"});
    fields.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    fields
}

fn component(url: &str, depends_on: &[&str]) -> Value {
    json!({"component_path": "p", "oci_url": url, "depends_on": depends_on})
}
