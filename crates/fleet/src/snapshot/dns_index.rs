//! Which clusters claim a DNS name. This is where polls come from.

use std::sync::Arc;

use model::Id;

use super::ByName;
use crate::Cluster;

/// The clusters that claim each DNS name, now or as a former name, in the order of their ids: of one name one live cluster at
/// most, if all is well, and any number of tombstones.
#[derive(Clone, Debug, Default)]
pub(super) struct DnsIndex(ByName<Arc<str>, Arc<[Cluster]>>);

impl DnsIndex {
    /// The clusters that claim a name, live or not, in the order of their ids.
    pub(super) fn claims(&self, dns: &str) -> &[Cluster] {
        self.0.get(dns).map_or(&[], AsRef::as_ref)
    }

    /// Notes which cluster of an id claims a name, or that none does any longer.
    pub(super) fn claim(&mut self, dns: &Arc<str>, id: &Id, cluster: Option<&Cluster>) {
        let others = self.claims(dns).iter().filter(|known| known.id() != id);
        let mut all: Vec<_> = others.chain(cluster).cloned().collect();
        all.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        if all.is_empty() {
            self.0.remove(dns);
        } else {
            self.0.insert(dns.clone(), all.into());
        }
    }
}
