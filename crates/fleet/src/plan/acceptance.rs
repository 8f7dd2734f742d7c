//! What clusters would lose if servers followed a change log that does not continue what they serve.
//!
//! The change log may record other types than the snapshot does: another kind behind a path, another list, other fields or
//! defaults. Which server answers then depends on its files, so the plan compares the served records with those of the change log,
//! whatever this server's files are. A record has no template. Where two records of a path differ, what becomes of its inputs is
//! not known, and all of them count as removed, and as added anew.

use std::collections::{BTreeMap, BTreeSet};

use model::{Id, InputPlan, Kind, Plan, ResourceType, TypeRecord};

use super::{
    PreviousOwner, add_cluster, add_losses_under_names, difference, document_plans, forgotten, held_on_path, inputs,
    plan_of_change, previous_owners,
};
use crate::{
    Cluster, ProtectedRemovals, Snapshot, SnapshotError,
    types::{last_type, listed_anew, path_plan},
};

/// The plan of accepting a change log whose snapshot is `log` where `served` is served; it has `refused` if it takes more from protected
/// clusters than is allowed.
pub fn plan_of_acceptance(served: &Snapshot, log: &Snapshot, allowed: usize) -> Result<Plan, SnapshotError> {
    let writes = difference(served, log);
    let (before, after) = (served.as_recorded()?, log.as_recorded()?);
    let known = |fleet: &Snapshot| -> BTreeSet<String> {
        fleet.registry().definitions().map(|ty| &ty.path).chain(fleet.types().known_paths()).cloned().collect()
    };
    let paths = &known(&before) | &known(&after);
    let is_alike = |path: &String| record_at(&before, path) == record_at(&after, path);
    let kinds = |fleet: &Snapshot| -> Vec<Kind> { fleet.registry().types().map(|ty| ty.kind.clone()).collect() };
    let lists_alike = match (served.types().cluster_record(), log.types().cluster_record()) {
        (Some(served), Some(accepted)) => served.is_continued_by(accepted),
        _ => true,
    };
    if lists_alike
        && served.undeclared_paths().next().is_none()
        && kinds(&before) == kinds(&after)
        && paths.iter().all(is_alike)
    {
        // Both are read by the same types.
        return plan_of_change(&before, &after, &writes, allowed);
    }
    let mut plan = Plan::new(served.point(), document_plans(served, &writes));
    let live = [&before, &after].into_iter().flat_map(|fleet| fleet.clusters().filter(|cluster| cluster.is_live()));
    let ids: BTreeSet<&Id> = live.map(Cluster::id).collect();
    for id in ids {
        let on_path = |path: &String| Some((path.clone(), plan_on_path(&before, &after, id, path)?));
        let mut inputs: BTreeMap<_, _> = paths.iter().filter_map(on_path).collect();
        add_losses_under_names(&before, &after, id, &mut inputs);
        let cluster = after.registry().by_kind(ResourceType::CLUSTER).filter(|_| !lists_alike);
        inputs.extend(cluster.map(|ty| (ty.path.clone(), listed_anew(&after, id))));
        add_cluster(&mut plan, &before, &after, id, inputs);
    }
    let is_protected = |id: &Id| {
        before.cluster(id).is_some_and(Cluster::is_protected)
            || previous_owners(&before, &after, id).iter().any(PreviousOwner::is_protected)
            || forgotten(&before, &after, id).iter().any(|released| released.was_protected)
    };
    let refused = ProtectedRemovals::of_clusters(&plan, is_protected).refused(allowed);
    Ok(Plan { refused, ..plan })
}

/// How a path is, or was the last to be, served: as it is recorded or, where nothing is, as the files of this server say.
fn record_at(fleet: &Snapshot, path: &str) -> Option<TypeRecord> {
    let declared = || fleet.registry().by_path(path).map(TypeRecord::declared);
    fleet.types().record_at(path).cloned().or_else(declared)
}

/// The type that answers polls of a path; none if it is not in force.
fn type_in_force<'a>(fleet: &'a Snapshot, path: &str) -> Option<&'a ResourceType> {
    let is_in_force = record_at(fleet, path).is_some_and(|record| !record.retired && record.path == path);
    last_type(fleet, path).filter(|_| is_in_force)
}

/// What one cluster would get differently on one path; none if nothing.
fn plan_on_path(before: &Snapshot, after: &Snapshot, id: &Id, path: &str) -> Option<InputPlan> {
    let (served, accepted) = (record_at(before, path), record_at(after, path));
    let (was, is) = (last_type(before, path), type_in_force(after, path));
    let is_alike =
        served.as_ref().zip(accepted.as_ref()).is_none_or(|(served, accepted)| served.is_continued_by(accepted));
    let mut plan = if is_alike {
        path_plan((before, was), (after, is), id, path).unwrap_or_default()
    } else {
        let added = is.map(|is| inputs((after, is), id).into_keys().collect()).unwrap_or_default();
        InputPlan { added, removed: held_on_path(before, was, id, path).into_iter().collect(), ..InputPlan::default() }
    };
    if !is_alike || is.is_none() {
        for owner in previous_owners(before, after, id) {
            plan.removed.extend(was.into_iter().flat_map(|was| owner.lost_whole((before, was))));
        }
    }
    if let (Some(served), None) = (served.filter(|served| !served.retired), was) {
        plan.removed.extend(lost_of_undeclared(before, after, &served, is_alike, id));
    }
    plan.removed.sort();
    plan.removed.dedup();
    let nothing = plan.added.is_empty() && plan.changed.is_empty() && plan.removed.is_empty();
    (!nothing).then_some(plan)
}

/// What a cluster refers to by the list of a type of which this server has no file, as far as it is not the same afterwards: what
/// other servers answer for it cannot be computed here.
fn lost_of_undeclared(before: &Snapshot, after: &Snapshot, served: &TypeRecord, is_alike: bool, id: &Id) -> Vec<Id> {
    let ids_in_list = |fleet: &Snapshot| -> BTreeSet<Id> {
        let live = fleet.cluster(id).filter(|cluster| cluster.is_live());
        let unread = live.filter(|cluster| cluster.unread_lists().iter().any(|list| **list == *served.list));
        unread.map(|cluster| cluster.ids_in(&served.list).into_iter().collect()).unwrap_or_default()
    };
    let kept = if is_alike { ids_in_list(after) } else { BTreeSet::new() };
    let definition = |fleet: &Snapshot, id: &Id| fleet.document_of_kind(&served.kind, id).map(model::Document::op);
    let is_lost = |id: &Id| !kept.contains(id) || definition(before, id) != definition(after, id);
    ids_in_list(before).into_iter().filter(is_lost).collect()
}
