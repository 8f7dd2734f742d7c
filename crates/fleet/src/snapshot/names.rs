//! Which clusters claim a DNS name. This is where polls come from.
//!
//! A tree, which pictures could share, leads to a name of a large fleet in six lines of memory that no cache holds; a table
//! does in one. But a table is whole or not at all. So there is a table, which stays as it is, and a small tree of what has
//! changed since it was made; when that is more than a little, the next table is made of both.

use std::{collections::HashMap, hash::BuildHasher as _, mem, slice, sync::Arc};

use foldhash::fast::RandomState;
use imbl::{GenericHashMap, shared_ptr::DefaultSharedPtr};
use model::Id;

use crate::Cluster;

/// By the hashes of the names. The names themselves are in the clusters, where they are served from.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hasher: RandomState,
    table: Arc<Table>,
    changed: GenericHashMap<u64, Claims, RandomState, DefaultSharedPtr>,
}

/// Of so many names in the table, one may have changed, and a few more; what it was stays in memory until then.
const SHARE: usize = 32;
const FEW: usize = 64;

/// The clusters that claim DNS names of one hash, now or as a former name, in the order of their ids. That is one name, by all
/// odds; and of it one live cluster at most, if all is well, and any number of tombstones.
type Claims = Arc<[Cluster]>;

impl Names {
    /// The clusters that claim a name, live or not, in the order of their ids.
    pub(super) fn claims(&self, dns: &str) -> impl Iterator<Item = &Cluster> {
        self.alike(self.hash(dns)).iter().filter(move |cluster| cluster.answers_to(dns))
    }

    /// Notes which cluster of an id claims a name, or that none does any longer.
    pub(super) fn claim(&mut self, dns: &str, id: &Id, cluster: Option<&Cluster>) {
        let hash = self.hash(dns);
        let others = self.alike(hash).iter().filter(|known| known.id() != id || !known.answers_to(dns));
        let mut all: Vec<_> = others.chain(cluster).cloned().collect();
        all.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        // A table that nobody else has is still in the making.
        match Arc::get_mut(&mut self.table).filter(|_| self.changed.is_empty()) {
            Some(table) => table.set(hash, &all),
            None => drop(self.changed.insert(hash, all.into())),
        }
        if self.changed.len() > self.table.taken / SHARE + FEW {
            let mut table = Table::clone(&self.table);
            mem::take(&mut self.changed).into_iter().for_each(|(hash, claims)| table.set(hash, &claims));
            self.table = Arc::new(table);
        }
    }

    fn hash(&self, dns: &str) -> u64 {
        self.hasher.hash_one(dns)
    }

    fn alike(&self, hash: u64) -> &[Cluster] {
        let changed = if self.changed.is_empty() { None } else { self.changed.get(&hash) };
        changed.map_or_else(|| self.table.get(hash), AsRef::as_ref)
    }
}

/// Clusters by hashes, each in the first free slot from the one on that its hash points to. The maps of libraries save
/// memory by looking at another line of it first, for which a poll of a large fleet would wait.
#[derive(Clone, Debug, Default)]
struct Table {
    /// As many as a power of two, and a quarter of them free.
    slots: Vec<Option<(u64, Cluster)>>,
    taken: usize,
    /// What has more than one cluster.
    crowded: HashMap<u64, Claims, RandomState>,
}

impl Table {
    fn get(&self, hash: u64) -> &[Cluster] {
        match self.slots.get(self.slot(hash)) {
            Some(Some((_, cluster))) => slice::from_ref(cluster),
            _ => self.crowded.get(&hash).map_or(&[], AsRef::as_ref),
        }
    }

    /// The slot that has a hash, or else is for it.
    fn slot(&self, hash: u64) -> usize {
        let last = self.slots.len().wrapping_sub(1);
        #[expect(clippy::cast_possible_truncation, reason = "it is cut to the number of slots anyway")]
        let mut at = hash as usize & last;
        while let Some(Some((other, _))) = self.slots.get(at)
            && *other != hash
        {
            at = (at + 1) & last;
        }
        at
    }

    /// Notes the clusters of a hash.
    fn set(&mut self, hash: u64, clusters: &[Cluster]) {
        match clusters {
            [one] => self.put(hash, one.clone()),
            _ => self.take_out(hash),
        }
        if clusters.len() > 1 {
            self.crowded.insert(hash, clusters.into());
        } else {
            self.crowded.remove(&hash);
        }
    }

    /// Frees the slot of a hash.
    fn take_out(&mut self, hash: u64) {
        let mut at = self.slot(hash);
        if self.slots.get_mut(at).and_then(Option::take).is_none() {
            return;
        }
        self.taken -= 1;
        // Those behind it may have wanted to be in it.
        loop {
            at = (at + 1) & (self.slots.len() - 1);
            let Some((hash, cluster)) = self.slots[at].take() else { return };
            self.taken -= 1;
            self.put(hash, cluster);
        }
    }

    /// Puts the one cluster of a hash into its slot.
    fn put(&mut self, hash: u64, cluster: Cluster) {
        let at = self.slot(hash);
        let has_room = (self.taken + 1) * 4 <= self.slots.len() * 3;
        match self.slots.get_mut(at) {
            Some(Some((_, known))) => *known = cluster,
            Some(free) if has_room => {
                *free = Some((hash, cluster));
                self.taken += 1;
            }
            _ => {
                let larger = vec![None; (self.slots.len() * 2).max(8)];
                self.taken = 0;
                for (hash, cluster) in mem::replace(&mut self.slots, larger).into_iter().flatten() {
                    self.put(hash, cluster);
                }
                self.put(hash, cluster);
            }
        }
    }
}
