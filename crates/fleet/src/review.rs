//! Whether a change may be: no saved state can stall a cluster or make its answers shorter than they were meant.
//!
//! A change is reviewed on the picture that it would make. What was wrong before it in other documents is not held against
//! it; what is wrong in those that it writes is, and whatever it would newly break, in every cluster that it touches, by name.

use std::collections::{BTreeMap, BTreeSet};

use model::{Change, FieldError, Id, MAX_SAFE_INTEGER, Map, Op, ResourceType, State, Value, Write, yaml};

use crate::{Answer, Cluster, Empty, Problem, Refusal, Rule, Snapshot, cores::beside_polls};

/// A change that may not be.
#[derive(Debug)]
pub struct Objections(pub Vec<FieldError>);

/// The snapshot that a change would make, or every rule that it would break; `broken` says which rules a write's document
/// breaks by itself, where that was looked at.
pub(crate) fn review(
    before: &Snapshot,
    change: &Change,
    broken: Vec<Option<Vec<FieldError>>>,
) -> Result<Snapshot, Objections> {
    let new = change.writes.iter().zip(broken).filter(|(write, _)| !is_restore(before, write)).collect();
    let check = |(write, broken): (&Write, Option<_>)| broken.unwrap_or_else(|| check_document(before, write));
    let mut errors = beside_polls(new, check).concat();
    match before.apply(change) {
        Ok(after) => {
            check_consequences(before, &after, &change.writes, &mut errors);
            errors.sort();
            errors.dedup();
            if errors.is_empty() { Ok(after) } else { Err(Objections(errors)) }
        }
        // A document that cannot even be read breaks a rule that is told already.
        Err(error) if errors.is_empty() => Err(Objections(vec![FieldError::new("", "unreadable", error.to_string())])),
        Err(_) => {
            errors.sort();
            Err(Objections(errors))
        }
    }
}

/// What the change would newly break in any document or answer.
fn check_consequences(before: &Snapshot, after: &Snapshot, writes: &[Write], errors: &mut Vec<FieldError>) {
    let known: BTreeSet<_> = before.problems().map(Problem::substance).collect();
    let written: BTreeMap<_, _> = writes.iter().map(|write| ((&write.kind, &write.id), write)).collect();
    for problem in after.problems() {
        let write = written.get(&(&problem.kind, &problem.id));
        let tolerated = write.is_some_and(|write| is_restore(before, write)) && problem.rule.is_tolerated();
        // A list that no type reads must not be left behind: the next reference would make the answer look whole.
        let trap = write.is_some() && problem.rule == Rule::UnreadList;
        if tolerated || (known.contains(&problem.substance()) && !trap) {
            continue;
        }
        let error = FieldError::new(&problem.pointer, problem.rule.name(), &problem.message);
        errors.push(error.of(&problem.kind, &problem.id));
    }
    // An answer that cannot be given for a reason that is told already needs no second telling.
    if errors.is_empty() {
        let restored: BTreeSet<_> =
            writes.iter().filter(|write| is_restore(before, write)).map(|write| &write.id).collect();
        let affected = affected(before, after, writes).into_iter().filter(|(id, _)| !restored.contains(id));
        let broken = beside_polls(affected.collect(), |(id, types)| check_answers(before, after, &id, &types));
        errors.extend(broken.into_iter().flatten());
    }
}

/// Whether a decommissioned cluster comes back as it was. What leaves it answered, or refused an answer, must not keep it
/// from that: to refuse would leave it told to delete everything.
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
    // What cannot be read is told when the change is applied.
    body.fields().map_or_else(|_| Vec::new(), |fields| check_fields(fleet, ty, &write.id, fields))
}

/// The fields of a document by itself.
pub(crate) fn check_fields(fleet: &Snapshot, ty: &ResourceType, id: &Id, fields: Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
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
                    errors.push(FieldError::new(pointer, "number-range", message).of(&ty.kind, id));
                }
            }
        }
    }
    errors.extend(ty.check(fields).into_iter().map(|error| error.of(&ty.kind, id)));
    errors
}

/// What Kubernetes cannot change stays, as long as a cluster may have it: one object that it refuses stalls all others of its
/// type. A document may say that its object is to be made anew instead.
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
            errors.push(FieldError::new(yaml::child("", field), "fixed", message).of(&ty.kind, id));
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
            errors.push(error.of(&cluster.document.kind, id));
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
            }
            None => {}
        }
    }
    affected
}
