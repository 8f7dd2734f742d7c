//! Which clusters claim a DNS name. This is where polls come from.
//!
//! A tree, which pictures could share, leads to a name of a large fleet in six lines of memory that no cache holds; a table
//! does in two. But a table is whole or not at all. So there is a table, which stays as it is, and a small tree of what has
//! changed since it was made; when that is more than a little, the next table is made of both.

use std::{collections::HashMap, hash::BuildHasher as _, sync::Arc};

use foldhash::fast::RandomState;
use imbl::{GenericHashMap, shared_ptr::DefaultSharedPtr};
use model::Id;

use crate::Cluster;

/// By the hashes of the names. The names themselves are in the clusters, where they are served from.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hasher: RandomState,
    table: Arc<HashMap<u64, Claims, RandomState>>,
    changed: GenericHashMap<u64, Claims, RandomState, DefaultSharedPtr>,
}

/// Of so many names in the table, one may have changed, and a few more; what it was stays in memory until then.
const SHARE: usize = 32;
const FEW: usize = 64;

/// The clusters that claim DNS names of one hash, in the order of their ids. That is one name, by all odds; and of it one live
/// cluster at most, if all is well, and any number of tombstones.
#[derive(Clone, Debug)]
enum Claims {
    One([Arc<Cluster>; 1]),
    Others(Arc<[Arc<Cluster>]>),
}

impl Claims {
    fn clusters(&self) -> &[Arc<Cluster>] {
        match self {
            Self::One(one) => one,
            Self::Others(others) => others,
        }
    }
}

impl Names {
    /// The clusters that claim a name, live or not, in the order of their ids.
    pub(super) fn claims(&self, dns: &str) -> impl Iterator<Item = &Cluster> {
        self.alike(self.hash(dns)).iter().map(AsRef::as_ref).filter(move |cluster| cluster.dns() == dns)
    }

    /// Notes which cluster of an id claims a name, or that none does any longer.
    pub(super) fn claim(&mut self, dns: &str, id: &Id, cluster: Option<&Arc<Cluster>>) {
        let hash = self.hash(dns);
        let others = self.alike(hash).iter().filter(|known| known.id() != id || known.dns() != dns);
        let mut all: Vec<_> = others.chain(cluster).cloned().collect();
        all.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        let claims = match <[_; 1]>::try_from(all) {
            Ok(one) => Claims::One(one),
            Err(others) => Claims::Others(others.into()),
        };
        // One that nobody else has is still in the making.
        match Arc::get_mut(&mut self.table).filter(|_| self.changed.is_empty()) {
            Some(table) => put(table, hash, claims),
            None => drop(self.changed.insert(hash, claims)),
        }
        if self.changed.len() > self.table.len() / SHARE + FEW {
            let mut table = HashMap::clone(&self.table);
            std::mem::take(&mut self.changed).into_iter().for_each(|(hash, claims)| put(&mut table, hash, claims));
            self.table = Arc::new(table);
        }
    }

    fn hash(&self, dns: &str) -> u64 {
        self.hasher.hash_one(dns)
    }

    fn alike(&self, hash: u64) -> &[Arc<Cluster>] {
        let changed = if self.changed.is_empty() { None } else { self.changed.get(&hash) };
        changed.or_else(|| self.table.get(&hash)).map_or(&[], Claims::clusters)
    }
}

fn put(table: &mut HashMap<u64, Claims, RandomState>, hash: u64, claims: Claims) {
    if claims.clusters().is_empty() {
        table.remove(&hash);
    } else {
        table.insert(hash, claims);
    }
}
