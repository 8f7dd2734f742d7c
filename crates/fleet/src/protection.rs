//! `deletion_protection` covers emptying: a change that removes inputs from protected clusters has to state how many.
//!
//! What counts is what a plan counts as removed, under every DNS name: inputs that go, that are disabled, or whose objects are
//! made anew. Whether a cluster is protected is read from the fleet before the change, so that one change cannot lift the
//! protection and use that. Decommissioning a protected cluster is refused however many removals are allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use model::{Id, Op, Plan, ProtectedCluster, RefusedRemovals, ResourceType, TypeRecord, Value, Write};

use crate::{
    Cluster, Snapshot, SnapshotError,
    cores::on_spare_cores,
    plan::{PreviousOwner, forgotten, lost_lists, own_plan, previous_owners},
    review::affected,
};

/// How many inputs a change may take from protected clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedRemovals {
    /// So many, over all protected clusters.
    AtMost(usize),
    /// Any number: the change is only planned, and its plan contains the refusal.
    Planned,
}

/// The inputs that a change would take from protected clusters, by cluster.
#[derive(Debug, Default)]
pub struct ProtectedRemovals(BTreeMap<Id, usize>);

/// How many clusters a sentence names.
const NAMED: usize = 10;

/// How many clusters a plan or a failure lists.
const LISTED: usize = 100;

impl ProtectedRemovals {
    /// What the step from one snapshot to the next takes from clusters that were protected before it.
    pub(crate) fn count(before: &Snapshot, after: &Snapshot, writes: &[Write]) -> Result<Self, SnapshotError> {
        let is_about_types = writes.iter().any(|write| write.kind.as_str() == TypeRecord::KIND);
        if is_about_types && before.has_moved_types() {
            return Ok(Self::of_plan(before, &before.plan_of_types(after, writes)?));
        }
        let affected = affected(before, after, writes).into_iter().collect();
        let removed = on_spare_cores(affected, |(id, types)| {
            let types = after.registry().definitions().filter(|ty| types.contains(&ty.position));
            removed_with(before, after, &id, &types.collect::<Vec<_>>())
        });
        let mut all = BTreeMap::new();
        for (id, count) in removed.into_iter().flatten().filter(|(_, count)| *count > 0) {
            *all.entry(id).or_default() += count;
        }
        Ok(Self(all))
    }

    /// The same of a plan in which no DNS name changes hands.
    pub(crate) fn of_plan(before: &Snapshot, plan: &Plan) -> Self {
        Self::of_clusters(plan, |id| before.cluster(id).is_some_and(Cluster::is_protected))
    }

    /// What a plan takes from the clusters for which this holds.
    pub(crate) fn of_clusters(plan: &Plan, is_protected: impl Fn(&Id) -> bool) -> Self {
        let removed = plan.clusters.iter().map(|it| {
            let count: usize = it.inputs.values().map(|inputs| inputs.removed.len()).sum();
            (it.id.clone(), count)
        });
        Self(removed.filter(|(id, count)| *count > 0 && is_protected(id)).collect())
    }

    /// How many inputs, over all protected clusters.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// The refusal in a plan, if the change is allowed to remove only so many.
    #[must_use]
    pub fn refused(&self, allowed: usize) -> Option<RefusedRemovals> {
        let listed = self.0.iter().take(LISTED).map(|(id, count)| ProtectedCluster { id: id.clone(), removed: *count });
        (self.total() > allowed).then(|| RefusedRemovals {
            code: "protected".into(),
            detail: self.to_string(),
            removed: self.total(),
            clusters: listed.collect(),
        })
    }
}

impl fmt::Display for ProtectedRemovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, count) = (self.total(), self.0.len());
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let named: Vec<_> = self.0.iter().take(NAMED).map(|(id, removed)| format!("{removed} from \"{id}\"")).collect();
        let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
        write!(
            f,
            "the change would remove {total} input{} from {count} cluster{} with deletion_protection ({}{more}); to do it, \
             set allow_removals={total}",
            plural(total),
            plural(count),
            named.join(", "),
        )
    }
}

/// What a change that touches one cluster removes from protected ones: from it and, where it takes a DNS name, from the clusters
/// that answered there, which may be the same one.
fn removed_with(before: &Snapshot, after: &Snapshot, id: &Id, types: &[&ResourceType]) -> Vec<(Id, usize)> {
    let is_protected = before.cluster(id).is_some_and(Cluster::is_protected);
    let owners: Vec<_> = previous_owners(before, after, id).into_iter().filter(PreviousOwner::is_protected).collect();
    let mut removed: BTreeMap<&Id, usize> = BTreeMap::new();
    for &ty in types {
        let mut of_type: BTreeMap<&Id, BTreeSet<Id>> = BTreeMap::new();
        if is_protected {
            of_type.entry(id).or_default().extend(own_plan((before, ty), (after, ty), id).removed);
        }
        for owner in &owners {
            of_type.entry(owner.id()).or_default().extend(owner.lost((before, ty), (after, ty), id));
        }
        for (id, inputs) in of_type {
            *removed.entry(id).or_default() += inputs.len();
        }
    }
    // A cluster that takes a name of its own back is counted once.
    let losers: BTreeSet<&Id> = owners.iter().map(PreviousOwner::id).chain(is_protected.then_some(id)).collect();
    for loser in losers {
        let lists = lost_lists(before, after, loser, id);
        *removed.entry(loser).or_default() += lists.values().map(Vec::len).sum::<usize>();
    }
    let protected = forgotten(before, after, id).into_iter().filter(|released| released.was_protected);
    let mut under_released_names: BTreeMap<String, BTreeSet<Id>> = BTreeMap::new();
    for (path, ids) in protected.flat_map(|released| released.inputs) {
        under_released_names.entry(path).or_default().extend(ids);
    }
    *removed.entry(id).or_default() += under_released_names.values().map(BTreeSet::len).sum::<usize>();
    removed.into_iter().map(|(id, count)| (id.clone(), count)).collect()
}

/// A protected cluster that a change would decommission or forget.
pub(crate) fn decommissioned<'a>(before: &Snapshot, writes: &'a [Write]) -> Option<&'a Id> {
    let decommissions = |write: &&Write| {
        let ty = before.registry().by_kind(write.kind.as_str());
        ty.is_some_and(ResourceType::is_cluster) && !matches!(write.op, Op::Put(_))
    };
    let mut removed = writes.iter().filter(decommissions).map(|write| &write.id);
    removed.find(|id| before.cluster(id).is_some_and(Cluster::is_protected))
}

impl Cluster {
    /// Whether it is in force and has `deletion_protection`.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        const FIELD: &str = "deletion_protection";
        if !self.is_live() {
            return false;
        }
        let text = self.document.body.text();
        // Most clusters are not protected, and their texts need not be read. A name may be escaped.
        let may_be = text.contains(FIELD) || text.contains('\\');
        may_be && self.document.body.fields().is_ok_and(|fields| fields.get(FIELD) == Some(&Value::Bool(true)))
    }
}
