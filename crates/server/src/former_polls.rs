//! Polls under a DNS name that their cluster had before. They are recorded in memory only and shown in `/problems`, so that an
//! operator sees them before a name is released. They never change a response.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use fleet::{Cluster, Problem, Rule, Snapshot};
use jiff::Timestamp;
use model::{Id, dns_spelling};

/// How long a poll under a former name is shown, in seconds: clusters poll far more often.
const SHOWN: i64 = 24 * 60 * 60;

/// The last poll under each former name. Only former names of clusters are recorded, so clients cannot make it grow.
#[derive(Default)]
pub(crate) struct FormerPolls(Mutex<BTreeMap<String, (Id, i64)>>);

impl FormerPolls {
    /// Records the poll of a cluster, if it uses a former name.
    pub(crate) fn note(&self, cluster: &Cluster, name: &str, second: i64) {
        let dns = cluster.dns();
        // Nearly every poll uses the present name, in its normal spelling.
        if dns == name || dns == dns_spelling(name) {
            return;
        }
        // A poll never waits for a request that lists all of them; it is skipped, and the next poll is recorded.
        let polls = match self.0.try_lock() {
            Ok(polls) => Some(polls),
            Err(TryLockError::Poisoned(polls)) => Some(polls.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut polls) = polls {
            polls.insert(dns_spelling(name).into_owned(), (cluster.id().clone(), second));
        }
    }

    /// One problem for each former name that is still polled.
    pub(crate) fn problems(&self, fleet: &Snapshot, now: Timestamp) -> Vec<Problem> {
        let polls = self.shown(fleet, now);
        let problem = |(name, (id, second)): (&String, &(Id, i64))| {
            let kind = fleet.cluster(id)?.document.kind.clone();
            let last = Timestamp::from_second(*second).ok()?;
            let message = format!(
                "it still polls under its former DNS name \"{name}\", last at {last}; move it to its present name before \
                 this one is released"
            );
            Some(Problem {
                kind,
                id: id.clone(),
                pointer: "/former_dns".to_owned(),
                rule: Rule::FormerDnsPolled,
                message,
            })
        };
        polls.iter().filter_map(problem).collect()
    }

    /// How many former names are still polled.
    pub(crate) fn count(&self, fleet: &Snapshot, now: Timestamp) -> u64 {
        self.shown(fleet, now).len() as u64
    }

    /// The recorded polls, without those that are no longer shown.
    fn shown(&self, fleet: &Snapshot, now: Timestamp) -> MutexGuard<'_, BTreeMap<String, (Id, i64)>> {
        let mut polls = self.lock();
        polls.retain(|name, (id, second)| {
            let cluster = fleet.cluster(id).filter(|cluster| cluster.is_live());
            let is_former = cluster.is_some_and(|cluster| cluster.former_dns().any(|former| former == name));
            is_former && now.as_second() - *second <= SHOWN
        });
        polls
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Id, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
