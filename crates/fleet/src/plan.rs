//! What a change would do: to documents, and to what each cluster gets. Computed by the code that serves polls.

use std::collections::BTreeMap;

use model::{ClusterPlan, Difference, DocumentPlan, Id, InputPlan, Kind, Op, Plan, Value, Write, yaml};

use crate::{Snapshot, order::Delivery, review::affected};

/// The plan of the step from one snapshot to the next.
#[must_use]
pub fn plan(before: &Snapshot, after: &Snapshot, writes: &[Write]) -> Plan {
    let documents = writes.iter().map(|write| document_plan(before, write)).collect();
    let mut plan =
        Plan { dry_run: true, revision: before.revision().0, documents, clusters: Vec::new(), totals: BTreeMap::new() };
    for (id, types) in affected(before, after, writes) {
        let inputs: BTreeMap<_, _> = after
            .registry()
            .definitions()
            .filter(|ty| types.contains(&ty.position))
            .filter_map(|ty| Some((ty.path.clone(), input_plan(before, after, &id, ty)?)))
            .collect();
        if inputs.is_empty() {
            continue;
        }
        let environment = environment(after, &id).or_else(|| environment(before, &id)).unwrap_or_default();
        let totals = plan.totals.entry(environment.clone()).or_default();
        totals.clusters += 1;
        for input in inputs.values() {
            totals.added += input.added.len();
            totals.changed += input.changed.len();
            totals.removed += input.removed.len();
        }
        plan.clusters.push(ClusterPlan { id, environment, inputs });
    }
    plan
}

/// The writes that would make one snapshot's documents of another's.
#[must_use]
pub fn difference(before: &Snapshot, after: &Snapshot) -> Vec<Write> {
    let said = |fleet: &Snapshot| -> BTreeMap<(Kind, Id), Op> {
        fleet.all_documents().map(|document| ((document.kind.clone(), document.id.clone()), document.op())).collect()
    };
    let (was, is) = (said(before), said(after));
    let gone = was.keys().filter(|key| !is.contains_key(key)).map(|key| (key.clone(), Op::Remove));
    let came = is.iter().filter(|(key, op)| was.get(key) != Some(op)).map(|(key, op)| (key.clone(), op.clone()));
    gone.chain(came).map(|((kind, id), op)| Write { kind, id, op }).collect()
}

fn environment(fleet: &Snapshot, id: &Id) -> Option<String> {
    let identity: Value = serde_json::from_str(fleet.cluster(id)?.identity()).ok()?;
    identity["environment"].as_str().map(ToOwned::to_owned)
}

fn document_plan(before: &Snapshot, write: &Write) -> DocumentPlan {
    let known = before.registry().by_kind(write.kind.as_str()).and_then(|ty| before.document(ty, &write.id));
    // A tombstone says nothing to anybody: what it said once is before, what it says now is nothing.
    let said = |op: &Op| match op {
        Op::Put(body) => body.fields().ok().map(Value::Object),
        Op::Retire(_) | Op::Remove => None,
    };
    let (was, is) = (known.and_then(|document| said(&document.op())), said(&write.op));
    let mut diff = Vec::new();
    compare("", was.as_ref(), is.as_ref(), &mut diff);
    DocumentPlan { kind: write.kind.clone(), id: write.id.clone(), op: write.op.name().into(), diff }
}

/// Tells values apart, as deep as both are objects.
fn compare(pointer: &str, before: Option<&Value>, after: Option<&Value>, diff: &mut Vec<Difference>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for (name, value) in before {
                compare(&yaml::child(pointer, name), Some(value), after.get(name), diff);
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                compare(&yaml::child(pointer, name), None, Some(value), diff);
            }
        }
        (before, after) => {
            diff.push(Difference { pointer: pointer.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

/// Whether two texts say different things; the order of members says nothing.
fn differ(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    value(one) != value(other)
}

/// What Flux makes of an input: nothing of one that is disabled, of a component one thing or another by where it comes from
/// and, for Helm, of which chart it is, and another object where a field changes that is fixed. Where that differs, Flux
/// deletes what it had made.
#[derive(PartialEq, Eq)]
enum Rendered {
    Nothing,
    Object { fixed: Vec<Value> },
    Release { chart: String },
    Kustomization,
}

impl Rendered {
    /// Of other types only their templates know, so everything is taken to render something.
    fn of(ty: &model::ResourceType, input: &str) -> Self {
        let is_component = ty.kind.as_str() == model::ResourceType::COMPONENT;
        if !is_component && ty.fixed.is_empty() {
            return Self::Object { fixed: Vec::new() };
        }
        let input = serde_json::from_str::<Value>(input).unwrap_or_default();
        if !is_component {
            return Self::Object { fixed: ty.fixed.keys().map(|field| input[field].clone()).collect() };
        }
        if input["enabled"] == false {
            return Self::Nothing;
        }
        match Delivery::of(input["source"].get("oci_url"), input.get("oci_content")) {
            Delivery::Kustomization => Self::Kustomization,
            Delivery::HelmRelease => {
                let path = input["component_path"].as_str().unwrap_or_default().trim_matches('/');
                Self::Release { chart: path.rsplit('/').next().unwrap_or_default().to_owned() }
            }
        }
    }
}

/// What one cluster would get differently of one type; none if nothing.
fn input_plan(before: &Snapshot, after: &Snapshot, id: &Id, ty: &model::ResourceType) -> Option<InputPlan> {
    // Review has refused changes after which an answer cannot be given; before, there may be none.
    let inputs = |fleet: &Snapshot, id: &Id| {
        fleet.cluster(id).and_then(|cluster| fleet.input_texts(cluster, ty).ok()).unwrap_or_default()
    };
    let (was, is) = (inputs(before, id), inputs(after, id));
    let mut plan = InputPlan::default();
    for (id, input) in &is {
        let Some(known) = was.get(id) else {
            let list = if Rendered::of(ty, input) == Rendered::Nothing { &mut plan.changed } else { &mut plan.added };
            list.push(id.clone());
            continue;
        };
        match (Rendered::of(ty, known), Rendered::of(ty, input)) {
            _ if known == input => {}
            (old, new) if old == new => plan.changed.extend(differ(known, input).then(|| id.clone())),
            (old, new) => {
                plan.removed.extend((old != Rendered::Nothing).then(|| id.clone()));
                plan.added.extend((new != Rendered::Nothing).then(|| id.clone()));
            }
        }
    }
    for (id, known) in was.iter().filter(|(id, _)| !is.contains_key(*id)) {
        let list = if Rendered::of(ty, known) == Rendered::Nothing { &mut plan.changed } else { &mut plan.removed };
        list.push(id.clone());
    }
    // A cluster that takes over the name of another one answers whoever polls under it.
    for (id, known) in previous_owner(before, after, id).map(|owner| inputs(before, owner)).unwrap_or_default() {
        let was = Rendered::of(ty, &known);
        let now = is.get(&id).map_or(Rendered::Nothing, |input| Rendered::of(ty, input));
        let lost = was != Rendered::Nothing && was != now;
        plan.removed.extend((lost && !plan.removed.contains(&id)).then_some(id));
    }
    plan.removed.sort();
    let nothing = plan.added.is_empty() && plan.changed.is_empty() && plan.removed.is_empty();
    (!nothing).then_some(plan)
}

/// The other cluster that was in force under the name that this one would have.
fn previous_owner<'a>(before: &'a Snapshot, after: &Snapshot, id: &Id) -> Option<&'a Id> {
    let owner = before.cluster_at(after.cluster(id)?.dns()).ok()?;
    (owner.id() != id).then(|| owner.id())
}
