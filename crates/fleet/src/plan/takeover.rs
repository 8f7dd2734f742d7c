//! What is lost under a DNS name to which a cluster newly answers.
//!
//! A poller keeps what the last answer under its name gave it. If that was long ago because the name was released, the
//! cluster that had the name may since have been emptied, decommissioned or created anew, so what counts is what was
//! remembered when the name was released. The cluster that newly answers may be that very cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use model::{Id, ResourceType};

use super::{Rendered, ServedType, inputs, unanswered};
use crate::{
    Cluster, Snapshot,
    cluster::{InputsByPath, Released, UNKNOWN},
};

/// The cluster that answered, or was the last to answer, to a name that a cluster newly answers to.
pub(crate) struct PreviousOwner<'a> {
    cluster: &'a Cluster,
    /// Present if it had released the name.
    released: Option<&'a Released>,
}

/// The clusters that answered to the names that a cluster would newly answer to.
pub(crate) fn previous_owners<'a>(before: &'a Snapshot, after: &Snapshot, id: &Id) -> Vec<PreviousOwner<'a>> {
    let mut owners = Vec::new();
    let known = before.cluster(id);
    let names = after.cluster(id).into_iter().flat_map(Cluster::dns_names);
    for name in names.filter(|name| known.is_none_or(|known| !known.answers_to(name))) {
        if let Ok(cluster) = before.cluster_at(name) {
            owners.push(PreviousOwner { cluster, released: None });
            continue;
        }
        // Released: a poller under this name still has what it got from the last cluster that answered there.
        for cluster in before.released_by(name).filter_map(|id| before.cluster(id)) {
            let released = cluster.released_dns().filter(|released| *released.name == **name);
            owners.extend(released.map(|released| PreviousOwner { cluster, released: Some(released) }));
        }
    }
    owners
}

impl PreviousOwner<'_> {
    pub(crate) fn id(&self) -> &Id {
        self.cluster.id()
    }

    /// Whether it has `deletion_protection`, or had when it released the name.
    pub(crate) fn is_protected(&self) -> bool {
        self.cluster.is_protected() || self.released.is_some_and(|released| released.protected)
    }

    /// What pollers under the name lose on one path when another cluster, or this one again, answers them there.
    pub(crate) fn lost(&self, before: ServedType<'_>, after: ServedType<'_>, taker: &Id) -> BTreeSet<Id> {
        self.lost_but(before, after.1, &inputs(after, taker))
    }

    /// What pollers under the name have on one path.
    pub(crate) fn lost_whole(&self, before: ServedType<'_>) -> BTreeSet<Id> {
        self.lost_but(before, before.1, &BTreeMap::new())
    }

    /// What pollers under the name lose on one path when they are answered these inputs of a type.
    fn lost_but(&self, before: ServedType<'_>, ty: &ResourceType, is: &BTreeMap<Id, String>) -> BTreeSet<Id> {
        let known_ty = before.1;
        let rendered = |id: &Id| is.get(id).map_or(Rendered::Nothing, |input| Rendered::from_input(ty, input));
        let own = inputs(before, self.id()).into_iter().filter(|(id, known)| {
            let was = Rendered::from_input(known_ty, known);
            was != Rendered::Nothing && was != rendered(id)
        });
        let refused = unanswered(before, self.id()).into_iter().filter(|id| !is.contains_key(id));
        let of_its_answer: BTreeSet<Id> = own.map(|(id, _)| id).chain(refused).collect();
        let Some(remembered) = self.released.and_then(|released| released.inputs.as_ref()) else {
            return of_its_answer;
        };
        // No poller under the name has what the cluster was given since the release.
        let had = paths(before.0, known_ty).filter_map(|path| remembered.get(path)).flatten();
        let is_lost = |id: &Id, was: &str| match was {
            UNKNOWN => true,
            was => was != rendered(id).name(ty),
        };
        had.filter(|(id, was)| is_lost(id, was)).map(|(id, _)| id.clone()).collect()
    }
}

/// A released name of which a change forgets what its pollers have: it purges the cluster, whether or not it creates it again.
pub(crate) struct ForgottenName {
    pub(crate) inputs: BTreeMap<String, BTreeSet<Id>>,
    /// Whether the cluster had `deletion_protection` when it released the name.
    pub(crate) was_protected: bool,
}

/// What pollers under the released names of a cluster have, where the cluster does not remember it after a change. No later plan
/// knows of it, so this one has to count it. A poller under a name that a cluster answers has what that cluster answers.
pub(crate) fn forgotten(before: &Snapshot, after: &Snapshot, id: &Id) -> Vec<ForgottenName> {
    let released = before.cluster(id).into_iter().flat_map(Cluster::released_dns);
    let is_remembered = |name: &str| {
        let mut kept = after.cluster(id).into_iter().flat_map(Cluster::released_dns);
        kept.any(|released| *released.name == *name)
    };
    let is_answered = |name: &str| [before, after].iter().any(|fleet| fleet.claims(name).next().is_some());
    let unanswered = released.filter(|released| !is_remembered(&released.name) && !is_answered(&released.name));
    let remembered = unanswered.filter_map(|released| {
        let ids = |(path, ids): (&String, &BTreeMap<Id, String>)| (path.clone(), ids.keys().cloned().collect());
        let inputs = released.inputs.as_ref()?.iter().map(ids).collect();
        Some(ForgottenName { inputs, was_protected: released.protected })
    });
    remembered.collect()
}

/// The paths at which a type answers, or was the last to answer: a poller may still have what it got there.
fn paths<'a>(fleet: &'a Snapshot, ty: &'a ResourceType) -> impl Iterator<Item = &'a str> {
    iter::once(&*ty.path).chain(fleet.types().former_paths(&ty.kind))
}

/// What pollers under a name of a cluster have of it, by path: what is answered or, where that is refused, all that the cluster
/// refers to.
pub(crate) fn held_by_pollers(fleet: &Snapshot, id: &Id) -> InputsByPath {
    let of_type = |ty: &ResourceType| -> BTreeMap<Id, String> {
        let answered = inputs((fleet, ty), id).into_iter();
        let answered = answered.map(|(id, input)| (id, Rendered::from_input(ty, &input)));
        let answered = answered.filter(|(_, rendered)| *rendered != Rendered::Nothing);
        let answered = answered.map(|(id, rendered)| (id, rendered.name(ty)));
        let refused = unanswered((fleet, ty), id).into_iter().map(|id| (id, UNKNOWN.to_owned()));
        answered.chain(refused).collect()
    };
    let mut held = InputsByPath::new();
    for ty in fleet.registry().definitions() {
        let inputs = of_type(ty);
        for path in paths(fleet, ty).filter(|_| !inputs.is_empty()) {
            held.insert(path.to_owned(), inputs.clone());
        }
    }
    held
}
