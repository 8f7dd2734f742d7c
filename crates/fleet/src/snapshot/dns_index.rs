//! Which clusters claim a DNS name. This is where polls come from.

use std::{slice, sync::Arc};

use model::Id;

use super::ByName;
use crate::Cluster;

/// The clusters that claim each DNS name, now or as a former name.
#[derive(Clone, Debug, Default)]
pub(super) struct DnsIndex(ByName<Arc<str>, Claims>);

/// The clusters that claim one name: one live cluster at most, if all is well, and any number of tombstones.
#[derive(Clone, Debug)]
enum Claims {
    /// Nearly every name is claimed by one, which a poll finds here without another step.
    One(Cluster),
    /// In the order of their ids.
    Several(Arc<[Cluster]>),
}

impl DnsIndex {
    /// The clusters that claim a name, live or not, in the order of their ids.
    pub(super) fn claims(&self, dns: &str) -> &[Cluster] {
        match self.0.get(dns) {
            None => &[],
            Some(Claims::One(cluster)) => slice::from_ref(cluster),
            Some(Claims::Several(clusters)) => clusters,
        }
    }

    /// Notes which cluster of an id claims a name, or that none does any longer.
    pub(super) fn claim(&mut self, dns: &Arc<str>, id: &Id, cluster: Option<&Cluster>) {
        let others = self.claims(dns).iter().filter(|known| known.id() != id);
        let mut all: Vec<_> = others.chain(cluster).cloned().collect();
        all.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        match &*all {
            [] => drop(self.0.remove(dns)),
            [one] => drop(self.0.insert(dns.clone(), Claims::One(one.clone()))),
            several => drop(self.0.insert(dns.clone(), Claims::Several(several.into()))),
        }
    }
}
