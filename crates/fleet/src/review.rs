//! Whether a change is allowed: no saved state can stall a cluster or make its answers shorter than intended.
//!
//! A change is reviewed on the snapshot that it would make. Existing problems of other documents do not refuse it. Problems of
//! the documents that it writes do, and so does everything that it would newly break in any cluster, by name.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Body, Change, FieldError, Id, Kind, MAX_SAFE_INTEGER, Map, Op, ResourceType, State, Value, Write, limits,
    limits::{COUNTED_ERRORS, ERRORS, Size},
    yaml,
};

use crate::{
    AllowedRemovals, Answer, Cluster, Empty, Problem, ProtectedRemovals, Refusal, Rule, Snapshot, SnapshotError,
    cores::on_spare_cores, protection::decommissioned, snapshot::DocumentKeys,
};

/// Why a change is refused.
#[derive(Debug)]
pub enum Objections {
    /// It would break these rules.
    Rules(Vec<FieldError>),
    /// It would decommission a protected cluster.
    ProtectedCluster(Id),
    /// It would take more from protected clusters than it is allowed to.
    ProtectedInputs(ProtectedRemovals),
}

/// The snapshot that a change would make, or every rule that it would break; `broken` has the rules that a write's document
/// breaks by itself, where that was checked already.
pub(crate) fn review(
    before: &Snapshot,
    change: &Change,
    broken: Vec<Option<Vec<FieldError>>>,
    allowed: AllowedRemovals,
) -> Result<Snapshot, Objections> {
    let after = check_rules(before, change, broken)?;
    if let Some(id) = decommissioned(before, &change.writes) {
        return Err(Objections::ProtectedCluster(id.clone()));
    }
    let AllowedRemovals::AtMost(allowed) = allowed else { return Ok(after) };
    match ProtectedRemovals::count(before, &after, &change.writes) {
        Ok(removed) if removed.total() > allowed => Err(Objections::ProtectedInputs(removed)),
        Ok(_) => Ok(after),
        Err(error) => Err(unreadable(&error)),
    }
}

fn unreadable(error: &SnapshotError) -> Objections {
    Objections::Rules(vec![FieldError::new("", "unreadable", error.to_string())])
}

fn check_rules(
    before: &Snapshot,
    change: &Change,
    broken: Vec<Option<Vec<FieldError>>>,
) -> Result<Snapshot, Objections> {
    let new = change.writes.iter().zip(broken).filter(|(write, _)| !is_restore(before, write)).collect();
    let check = |(write, broken): (&Write, Option<_>)| broken.unwrap_or_else(|| check_document(before, write));
    let mut errors = on_spare_cores(new, check).concat();
    if errors
        .iter()
        .any(|error| [limits::DEPTH_RULE, limits::ELEMENTS_RULE, limits::BYTES_RULE].contains(&&*error.rule))
    {
        // No snapshot is made of what is too large.
        errors.sort();
        return Err(Objections::Rules(errors));
    }
    match before.apply_and_examine(change) {
        Ok((after, examined)) => {
            check_consequences(before, &after, &change.writes, examined, &mut errors);
            errors.sort();
            errors.dedup();
            if errors.is_empty() { Ok(after) } else { Err(Objections::Rules(errors)) }
        }
        // A document that cannot be read breaks a rule that is reported already.
        Err(error) if errors.is_empty() => Err(unreadable(&error)),
        Err(_) => {
            errors.sort();
            Err(Objections::Rules(errors))
        }
    }
}

/// How many documents are checked before the number of errors is compared with the limit.
const CHECKED_AT_ONCE: usize = 2_000;

/// What the change would newly break in any document or answer. `examined` are the documents that can have other problems than
/// before: no other document is checked.
fn check_consequences(
    before: &Snapshot,
    after: &Snapshot,
    writes: &[Write],
    examined: DocumentKeys,
    errors: &mut Vec<FieldError>,
) {
    let written: BTreeMap<_, _> = writes.iter().map(|write| ((&write.kind, &write.id), write)).collect();
    // A tombstone that is put back has no problems of its own, though it would answer where a live cluster lets its name go.
    let puts_tombstone_back =
        writes.iter().any(|write| matches!(write.op, Op::Retire(_)) && before.cluster(&write.id).is_none());
    let broken = |key: &(Kind, Id)| !after.problem_index().of_document(key).is_empty();
    let mut broken = examined.into_iter().filter(broken).peekable();
    // A change that breaks something in every cluster does not get all errors: the texts alone would take gigabytes.
    while broken.peek().is_some() && errors.len() <= COUNTED_ERRORS {
        let some = broken.by_ref().take(CHECKED_AT_ONCE).collect();
        let found = on_spare_cores(some, |key: (Kind, Id)| {
            let write = written.get(&(&key.0, &key.1)).copied();
            new_problems(before, after, &key, write, puts_tombstone_back)
        });
        errors.extend(found.into_iter().flatten());
    }
    // Answers are checked only if nothing is wrong so far: most refused answers have a reason that is reported already.
    if errors.is_empty() {
        let restored: BTreeSet<_> =
            writes.iter().filter(|write| is_restore(before, write)).map(|write| &write.id).collect();
        let affected = affected(before, after, writes).into_iter().filter(|(id, _)| !restored.contains(id));
        let broken = on_spare_cores(affected.collect(), |(id, types)| check_answers(before, after, &id, &types));
        errors.extend(broken.into_iter().flatten());
    }
}

/// What is newly wrong with one document, which may be one that is written.
fn new_problems(
    before: &Snapshot,
    after: &Snapshot,
    key: &(Kind, Id),
    write: Option<&Write>,
    puts_tombstone_back: bool,
) -> Vec<FieldError> {
    let known = before.problems_of(key);
    let known: BTreeSet<_> = known.iter().map(Problem::substance).collect();
    let is_restore = write.is_some_and(|write| is_restore(before, write));
    let is_new = |problem: &Problem| {
        let tolerated = is_restore && problem.rule.is_tolerated();
        // A list that no type reads must not be left behind: the next reference would make the answer look whole.
        let is_left_behind = write.is_some() && problem.rule == Rule::UnreadList;
        // Of two clusters that claim one name, the one that is written is at fault, and its error names the other.
        let is_reported_there = match problem.rule {
            Rule::DuplicateDns => true,
            Rule::TombstoneDns => !puts_tombstone_back,
            _ => false,
        };
        let other_holder = write.is_none() && is_reported_there;
        !tolerated && !other_holder && (is_left_behind || !known.contains(&problem.substance()))
    };
    let new = after.problems_of(key).into_iter().filter(is_new).take(ERRORS);
    new.map(|it| FieldError::new(&it.pointer, it.rule.name(), &it.message).in_document(&it.kind, &it.id)).collect()
}

/// Whether a decommissioned cluster comes back as it was. Tolerated problems do not refuse that: as long as it is decommissioned,
/// its answers tell Flux to delete everything.
fn is_restore(before: &Snapshot, write: &Write) -> bool {
    let tombstone = before.registry().by_kind(write.kind.as_str()).and_then(|ty| before.document(ty, &write.id));
    tombstone.is_some_and(|document| {
        document.state == State::Retired && matches!(&write.op, Op::Put(body) if *body == document.body)
    })
}

/// A document by itself.
fn check_document(fleet: &Snapshot, write: &Write) -> Vec<FieldError> {
    let (Op::Put(body), Some(ty)) = (&write.op, fleet.registry().by_kind(write.kind.as_str())) else {
        return Vec::new();
    };
    // What cannot be read is reported when the change is applied.
    body.fields().map_or_else(|_| Vec::new(), |fields| check_fields(fleet, ty, &write.id, fields, body))
}

/// The fields of a document by itself; the body has the same fields.
pub(crate) fn check_fields(fleet: &Snapshot, ty: &ResourceType, id: &Id, fields: Map, body: &Body) -> Vec<FieldError> {
    // What is too large is not checked further.
    let mut errors = limits::check_document(&fields, body.text().len(), || saved_size(fleet, ty, id));
    if !errors.is_empty() {
        return errors.into_iter().map(|error| error.in_document(&ty.kind, id)).collect();
    }
    if !ty.fixed.is_empty() {
        check_fixed(fleet, ty, id, &fields, &mut errors);
    }
    if let Some(Value::Object(patches)) = fields.get("patches").filter(|_| ty.is_cluster()) {
        for (component, patches) in patches {
            for (key, value) in patches.as_object().into_iter().flatten() {
                let integer = value.as_str().and_then(|text| text.parse::<i64>().ok());
                if integer.is_some_and(|integer| integer.unsigned_abs() > MAX_SAFE_INTEGER) {
                    let pointer = yaml::child(&yaml::child("/patches", component), key);
                    let message = "Helm reads this as a number, and beyond 2^53 it loses digits on its way";
                    errors.push(FieldError::new(pointer, "number-range", message).in_document(&ty.kind, id));
                }
            }
        }
    }
    errors.extend(ty.check(fields).into_iter().map(|error| error.in_document(&ty.kind, id)));
    errors
}

/// The size of what is saved, which an edit may keep.
fn saved_size(fleet: &Snapshot, ty: &ResourceType, id: &Id) -> Size {
    let Some(known) = fleet.document(ty, id) else { return Size::default() };
    let text = known.body.text();
    let fields = model::read_fields(&text).ok();
    fields.map_or_else(Size::default, |fields| Size::of_document(&fields, text.len()))
}

/// What Kubernetes cannot change stays, as long as a cluster may have it: one object that it refuses stalls all others of its
/// type. A document may ask for a new object instead.
fn check_fixed(fleet: &Snapshot, ty: &ResourceType, id: &Id, fields: &Map, errors: &mut Vec<FieldError>) {
    let Some(known) = fleet.document(ty, id).and_then(|document| document.body.fields().ok()) else { return };
    // A decommissioned cluster may be restored before it has let anything go.
    let is_there = || fleet.holders(ty, id).next().is_some();
    for (field, unless) in &ty.fixed {
        let changes = known.get(field) != fields.get(field) && fields.get(unless) != Some(&Value::Bool(true));
        if changes && is_there() {
            let message = format!(
                "Kubernetes cannot change it on the clusters that have it; with \"{unless}\": true they delete the object \
                 and make it anew"
            );
            errors.push(FieldError::new(yaml::child("", field), "fixed", message).in_document(&ty.kind, id));
        }
    }
}

fn check_answers(before: &Snapshot, after: &Snapshot, id: &Id, types: &BTreeSet<usize>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(cluster) = after.cluster(id).filter(|cluster| cluster.is_live()) else { return errors };
    for ty in after.registry().definitions().filter(|ty| types.contains(&ty.position)) {
        let Err(refusal) = answer(after, cluster, ty) else { continue };
        let was_refused = before.cluster(id).is_some_and(|cluster| answer(before, cluster, ty).is_err());
        if !was_refused {
            let error = FieldError::new(format!("/{}", ty.list), refusal.code(), refusal.to_string());
            errors.push(error.in_document(&cluster.document.kind, id));
        }
    }
    errors
}

fn answer(fleet: &Snapshot, cluster: &Cluster, ty: &ResourceType) -> Result<Answer, Refusal> {
    fleet.inputs(cluster, ty, Empty::Bare)
}

/// The clusters that a change can make a difference to, each with the positions of the types that it can.
pub(crate) fn affected(before: &Snapshot, after: &Snapshot, writes: &[Write]) -> BTreeMap<Id, BTreeSet<usize>> {
    let mut affected: BTreeMap<Id, BTreeSet<usize>> = BTreeMap::new();
    for write in writes {
        match after.registry().by_kind(write.kind.as_str()) {
            Some(ty) if ty.is_cluster() => {
                let all = after.registry().definitions().map(|ty| ty.position);
                affected.entry(write.id.clone()).or_default().extend(all);
            }
            Some(ty) => {
                for cluster in before.referrers(ty, &write.id).chain(after.referrers(ty, &write.id)) {
                    affected.entry(cluster.clone()).or_default().insert(ty.position);
                }
                // Where the same id is missing as another type, the answer depends on whether it is there as this one.
                for other in after.registry().definitions().filter(|other| other.position != ty.position) {
                    if after.definition_by_name(other, write.id.as_str()).is_none() {
                        for cluster in after.referrers(other, &write.id) {
                            affected.entry(cluster.clone()).or_default().insert(other.position);
                        }
                    }
                }
            }
            None => {}
        }
    }
    affected
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use model::{Body, Change, Document, Id, Op, Origin, Point, Registry, Revision, State, Value, Write};
    use serde_json::json;

    use crate::{AllowedRemovals, Rule, Snapshot, problems::CHECKED};

    const CLUSTERS: usize = 300;

    fn cluster(at: usize, node_count: usize) -> Value {
        json!({
            "id": format!("c{at}"), "cluster_name": format!("c{at}"), "cluster_dns": format!("c{at}.example"),
            "environment": "dev", "node_count": node_count,
            "platform_components": [{"id": if at < 3 { "rare" } else { "app" }}],
            "patches": {"app": {"a.b": "1", "c.d": "2"}}
        })
    }

    /// Every cluster has problems; three of them refer to the component "rare".
    fn troubled() -> Snapshot {
        let component =
            |id: &str| json!({"id": id, "component_path": "p", "oci_url": "oci://x/y", "depends_on": ["missing"]});
        let components = ["app", "rare"].map(|id| ("platform_component", id.to_owned(), component(id)));
        let clusters = (0..CLUSTERS).map(|at| ("cluster", format!("c{at}"), cluster(at, 3)));
        let documents = components.into_iter().chain(clusters).map(|(kind, id, body)| Document {
            kind: kind.into(),
            id: Id::parse(&id).unwrap(),
            revision: Revision(1),
            state: State::Live,
            body: Body::from_fields(body.as_object().unwrap()),
        });
        Snapshot::load(Arc::new(Registry::built_in().unwrap()), Point::default(), documents).unwrap()
    }

    /// How many documents are checked to review one write.
    fn checked(fleet: &Snapshot, kind: &str, id: &str, body: &Value) -> usize {
        let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
        let op = Op::Put(Body::from_fields(body.as_object().unwrap()));
        let change =
            Change::after(fleet.point(), origin, vec![Write { kind: kind.into(), id: Id::parse(id).unwrap(), op }]);
        let before = CHECKED.get();
        let next = super::review(fleet, &change, vec![Some(Vec::new())], AllowedRemovals::AtMost(0)).unwrap();
        let risen = next.risen_problems(Some(fleet));
        assert!(risen.is_none_or(|risen| risen.examples.iter().all(|it| it.id.as_str() == id)));
        CHECKED.get() - before
    }

    #[test]
    fn a_change_in_a_troubled_fleet_looks_at_no_document_that_it_does_not_touch() {
        let fleet = troubled();
        assert!(fleet.problem_count(Rule::InvalidVariable) > CLUSTERS as u64);
        // Counted, and listed as it was and as it is.
        assert!(checked(&fleet, "cluster", "c7", &cluster(7, 4)) <= 3);
        // A definition that is ordered as before has no other problems than before, nor has any cluster.
        let mut rare = json!({"id": "rare", "component_path": "q", "oci_url": "oci://x/y", "depends_on": ["missing"]});
        assert!(checked(&fleet, "platform_component", "rare", &rare) <= 3);
        // One that is ordered in another way has other problems, and so may the clusters that refer to it.
        rare["depends_on"] = json!([]);
        let few = checked(&fleet, "platform_component", "rare", &rare);
        assert!((4..=20).contains(&few), "{few}");
    }
}
