//! What a change would do: to documents, and to what each cluster gets. Computed by the code that serves polls.

mod acceptance;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterPlan, Difference, DocumentPlan, Id, InputPlan, Kind, Op, Plan, ResourceType, Value, Write, yaml};

pub use acceptance::plan_of_acceptance;
pub(crate) use takeover::{PreviousOwner, forgotten, held_by_pollers, previous_owners};

use crate::{ProtectedRemovals, Refusal, Snapshot, SnapshotError, order::Delivery, review::affected};

/// The plan of a change that may remove so many inputs from protected clusters. Where that is too few, the plan has the refusal.
pub fn plan_of_change(
    before: &Snapshot,
    after: &Snapshot,
    writes: &[Write],
    allowed: usize,
) -> Result<Plan, SnapshotError> {
    let refused = ProtectedRemovals::count(before, after, writes)?.refused(allowed);
    Ok(Plan { refused, ..plan(before, after, writes) })
}

/// The plan of the step from one snapshot to the next, without a limit for protected clusters.
#[must_use]
pub fn plan(before: &Snapshot, after: &Snapshot, writes: &[Write]) -> Plan {
    let mut plan = Plan::new(before.point(), document_plans(before, writes));
    for (id, types) in affected(before, after, writes) {
        let mut inputs: BTreeMap<_, _> = after
            .registry()
            .definitions()
            .filter(|ty| types.contains(&ty.position))
            .filter_map(|ty| Some((ty.path.clone(), input_plan((before, ty), (after, ty), &id)?)))
            .collect();
        add_losses_under_names(before, after, &id, &mut inputs);
        add_cluster(&mut plan, before, after, &id, inputs);
    }
    plan
}

/// Adds what pollers lose of types that are gone, and under names of which the change forgets what they have.
fn add_losses_under_names(before: &Snapshot, after: &Snapshot, id: &Id, inputs: &mut BTreeMap<String, InputPlan>) {
    let owners = previous_owners(before, after, id);
    let owners = owners.iter().map(PreviousOwner::id).chain([id]);
    for (path, lost) in owners.flat_map(|owner| lost_lists(before, after, owner, id)) {
        inputs.entry(path).or_default().removed.extend(lost);
    }
    for (path, ids) in forgotten(before, after, id).into_iter().flat_map(|released| released.inputs) {
        inputs.entry(path).or_default().removed.extend(ids);
    }
    for input in inputs.values_mut() {
        input.removed.sort();
        input.removed.dedup();
    }
}

/// What would happen to each document that is written.
pub(crate) fn document_plans(before: &Snapshot, writes: &[Write]) -> Vec<DocumentPlan> {
    writes.iter().map(|write| document_plan(before, write)).collect()
}

/// Adds what a cluster would get differently, if anything.
pub(crate) fn add_cluster(
    plan: &mut Plan,
    before: &Snapshot,
    after: &Snapshot,
    id: &Id,
    inputs: BTreeMap<String, InputPlan>,
) {
    if inputs.is_empty() {
        return;
    }
    let environment = environment(after, id).or_else(|| environment(before, id)).unwrap_or_default();
    let totals = plan.totals.entry(environment.clone()).or_default();
    totals.clusters += 1;
    for input in inputs.values() {
        totals.added += input.added.len();
        totals.changed += input.changed.len();
        totals.removed += input.removed.len();
    }
    plan.clusters.push(ClusterPlan { id: id.clone(), environment, inputs });
}

/// The writes that would make one snapshot's documents of another's.
#[must_use]
pub fn difference(before: &Snapshot, after: &Snapshot) -> Vec<Write> {
    let operations = |fleet: &Snapshot| -> BTreeMap<(Kind, Id), Op> {
        fleet.all_documents().map(|document| ((document.kind.clone(), document.id.clone()), document.op())).collect()
    };
    let (was, is) = (operations(before), operations(after));
    let removed = was.keys().filter(|key| !is.contains_key(key)).map(|key| (key.clone(), Op::Remove));
    let put = is.iter().filter(|(key, op)| was.get(key) != Some(op)).map(|(key, op)| (key.clone(), op.clone()));
    removed.chain(put).map(|((kind, id), op)| Write { kind, id, op }).collect()
}

fn environment(fleet: &Snapshot, id: &Id) -> Option<String> {
    let identity: Value = serde_json::from_str(fleet.cluster(id)?.identity()).ok()?;
    identity["environment"].as_str().map(ToOwned::to_owned)
}

fn document_plan(before: &Snapshot, write: &Write) -> DocumentPlan {
    let known = before.document_of_kind(&write.kind, &write.id);
    // A tombstone has no content in a plan: its former content is before, and nothing is after.
    let content = |op: &Op| match op {
        Op::Put(body) => body.fields().ok().map(Value::Object),
        Op::Retire(_) | Op::Remove => None,
    };
    let (was, is) = (known.and_then(|document| content(&document.op())), content(&write.op));
    let mut diff = Vec::new();
    compare("", was.as_ref(), is.as_ref(), &mut diff);
    DocumentPlan { kind: write.kind.clone(), id: write.id.clone(), op: write.op.name().into(), diff }
}

/// Lists the differences between two values, as deep as both are objects.
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
        (before, after) => diff.push(Difference::new(pointer, before, after)),
    }
}

/// Whether two texts of JSON have different values; the order of members does not matter.
fn differ(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    value(one) != value(other)
}

/// What Flux renders from an input: nothing if it is disabled; for a component a Helm release of a chart or a Kustomization,
/// depending on its source; and another object where a fixed field changes. Where that differs, Flux deletes the object that it
/// rendered before.
#[derive(PartialEq, Eq)]
enum Rendered {
    Nothing,
    Object { fixed: Vec<Value>, disabled: bool },
    Release { chart: String },
    Kustomization,
}

impl Rendered {
    /// For other types only their templates decide, so every input counts as an object; a disabled one may still be rendered.
    fn from_input(ty: &ResourceType, input: &str) -> Self {
        let is_component = ty.kind.as_str() == ResourceType::COMPONENT;
        if !is_component && ty.fixed.is_empty() && !input.contains("\"enabled\"") {
            return Self::Object { fixed: Vec::new(), disabled: false };
        }
        let input = serde_json::from_str::<Value>(input).unwrap_or_default();
        if !is_component {
            let fixed = ty.fixed.keys().map(|field| input[field].clone()).collect();
            return Self::Object { fixed, disabled: input["enabled"] == false };
        }
        if input["enabled"] == false {
            return Self::Nothing;
        }
        match Delivery::from_source(input["source"].get("oci_url"), input.get("oci_content")) {
            Delivery::Kustomization => Self::Kustomization,
            Delivery::HelmRelease => {
                let path = input["component_path"].as_str().unwrap_or_default().trim_matches('/');
                Self::Release { chart: path.rsplit('/').next().unwrap_or_default().to_owned() }
            }
        }
    }
}

impl Rendered {
    /// A text that identifies the rendered object: Flux keeps the object if the text stays the same.
    fn name(&self, ty: &ResourceType) -> String {
        let kind = &ty.kind;
        match self {
            Self::Nothing => String::new(),
            Self::Object { fixed, disabled } => {
                let fixed = Value::from(fixed.clone());
                if *disabled { format!("disabled {kind} {fixed}") } else { format!("{kind} {fixed}") }
            }
            Self::Release { chart } => format!("{kind} of chart {chart}"),
            Self::Kustomization => format!("{kind} of kustomization"),
        }
    }

    /// Whether it is an object that is certainly wanted.
    fn is_enabled(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Object { disabled: true, .. })
    }
}

/// A fleet, and the type by which it answers on a path.
pub(crate) type ServedType<'a> = (&'a Snapshot, &'a ResourceType);

/// The inputs of a cluster by their ids. Review has refused changes after which an answer cannot be given; before, there may
/// be none.
fn inputs((fleet, ty): ServedType<'_>, id: &Id) -> BTreeMap<Id, String> {
    fleet.cluster(id).and_then(|cluster| fleet.input_texts(cluster, ty).ok()).unwrap_or_default()
}

/// What one cluster would get differently on one path; none if nothing.
pub(crate) fn input_plan(before: ServedType<'_>, after: ServedType<'_>, id: &Id) -> Option<InputPlan> {
    let mut plan = own_plan(before, after, id);
    for owner in previous_owners(before.0, after.0, id) {
        let lost = owner.lost(before, after, id);
        plan.removed.extend(lost.into_iter().filter(|id| !plan.removed.contains(id)).collect::<Vec<_>>());
    }
    plan.removed.sort();
    // The object that pollers have is deleted; what they get is a new one.
    let anew = plan.changed.extract_if(.., |id| plan.removed.contains(id));
    plan.added.extend(anew);
    plan.added.sort();
    let nothing = plan.added.is_empty() && plan.changed.is_empty() && plan.removed.is_empty();
    (!nothing).then_some(plan)
}

/// What one cluster would get differently on one path under the names that it has.
pub(crate) fn own_plan((before, known_ty): ServedType<'_>, (after, ty): ServedType<'_>, id: &Id) -> InputPlan {
    let (was, is) = (inputs((before, known_ty), id), inputs((after, ty), id));
    let mut plan = InputPlan::default();
    for (id, input) in &is {
        let Some(known) = was.get(id) else {
            let list =
                if Rendered::from_input(ty, input) == Rendered::Nothing { &mut plan.changed } else { &mut plan.added };
            list.push(id.clone());
            continue;
        };
        match (Rendered::from_input(known_ty, known), Rendered::from_input(ty, input)) {
            _ if known == input && known_ty.kind == ty.kind => {}
            (old, new) if old == new && known_ty.kind == ty.kind => {
                plan.changed.extend(differ(known, input).then(|| id.clone()));
            }
            (old, new) => {
                plan.removed.extend(old.is_enabled().then(|| id.clone()));
                plan.added.extend(new.is_enabled().then(|| id.clone()));
            }
        }
    }
    for (id, known) in was.iter().filter(|(id, _)| !is.contains_key(*id)) {
        let list = if Rendered::from_input(known_ty, known) == Rendered::Nothing {
            &mut plan.changed
        } else {
            &mut plan.removed
        };
        list.push(id.clone());
    }
    let running = unanswered((before, known_ty), id);
    if !running.is_empty() {
        // Where an answer is still refused, nothing is deleted.
        let kept = unanswered((after, ty), id);
        plan.removed.extend(running.into_iter().filter(|id| !is.contains_key(id) && !kept.contains(id)));
    }
    plan
}

/// What a cluster refers to where its answer is refused, also by a list that no type reads any more. Flux keeps the objects of
/// an earlier answer, so all of it may be running.
fn unanswered((fleet, ty): ServedType<'_>, id: &Id) -> BTreeSet<Id> {
    let Some(cluster) = fleet.cluster(id).filter(|cluster| cluster.is_live()) else { return BTreeSet::new() };
    let Err(refusal) = fleet.input_texts(cluster, ty) else { return BTreeSet::new() };
    let mut ids: BTreeSet<Id> = fleet.references(cluster, ty).map(|(id, ..)| id.clone()).collect();
    for list in cluster.unread_lists() {
        let was_read = match fleet.types().record_of_list(list) {
            Some(record) => !record.retired && record.kind == ty.kind,
            None => matches!(refusal, Refusal::UnreadList(_)),
        };
        if was_read {
            ids.extend(cluster.ids_in(list));
        }
    }
    ids
}

/// What a cluster refers to by lists of retired types, by the types' paths. Their paths are 404, so all of it may be running.
fn lists_of_retired_types(fleet: &Snapshot, id: &Id) -> BTreeMap<String, BTreeSet<Id>> {
    let mut ids: BTreeMap<String, BTreeSet<Id>> = BTreeMap::new();
    let live = fleet.cluster(id).filter(|cluster| cluster.is_live());
    for (cluster, list) in live.into_iter().flat_map(|it| it.unread_lists().iter().map(move |list| (it, list))) {
        if let Some(record) = fleet.types().record_of_list(list).filter(|record| record.retired) {
            ids.entry(record.path.clone()).or_default().extend(cluster.ids_in(list));
        }
    }
    ids
}

/// What pollers of one path may have of a cluster, as far as its documents still show: what the type answers that was the last to
/// answer there, or all that it refers to where that answer is refused; and what lists of retired types refer to.
pub(crate) fn held_on_path(fleet: &Snapshot, ty: Option<&ResourceType>, id: &Id, path: &str) -> BTreeSet<Id> {
    let mut held = lists_of_retired_types(fleet, id).remove(path).unwrap_or_default();
    if let Some(ty) = ty {
        let rendered = inputs((fleet, ty), id).into_iter();
        held.extend(
            rendered.filter(|(_, input)| Rendered::from_input(ty, input) != Rendered::Nothing).map(|(id, _)| id),
        );
        held.extend(unanswered((fleet, ty), id));
    }
    held
}

/// What pollers under a name of one cluster lose of retired types, by the types' paths, when the same or another cluster
/// answers them.
pub(crate) fn lost_lists(before: &Snapshot, after: &Snapshot, owner: &Id, taker: &Id) -> BTreeMap<String, Vec<Id>> {
    let was = lists_of_retired_types(before, owner);
    if was.is_empty() {
        return BTreeMap::new();
    }
    let is = lists_of_retired_types(after, taker);
    let lost = was.into_iter().map(|(path, ids)| {
        let ids: Vec<_> = ids.into_iter().filter(|id| is.get(&path).is_none_or(|ids| !ids.contains(id))).collect();
        (path, ids)
    });
    lost.filter(|(_, ids)| !ids.is_empty()).collect()
}
