//! The definitions of one type, and the clusters that refer to them.

use std::{
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

use foldhash::fast::RandomState;
use imbl::{GenericHashMap, OrdMap, shared_ptr::DefaultSharedPtr};
use model::{Id, InvalidId, ResourceType};
use roaring::RoaringBitmap;

use crate::{
    Definition,
    cycles::Cycles,
    merge::{Field, Source, fields_of},
    slots::{Slot, Slots},
};

/// A version of a cluster or a catalogue; every one is unique while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The definitions of one type. Every id that is defined or referred to has a slot here, so that the many references
/// of a fleet are numbers, and a poll finds definitions without comparing names.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    /// The type's defaults, the weakest source of every input.
    defaults: Arc<[Field<'static>]>,
    by_id: OrdMap<Id, Slot>,
    /// The same slots, found without comparing names on the way: a poll looks up each dependency here.
    by_name: GenericHashMap<Id, Slot, RandomState, DefaultSharedPtr>,
    entries: Slots<Entry>,
    /// How many definitions there are.
    defined: usize,
    /// How long their plain inputs are together.
    plain_len: usize,
    /// The cycles in which definitions depend on one another, by their slots; they are searched for whenever a dependency
    /// comes or goes.
    cycles: Arc<Cycles>,
    /// Changes with everything here that answers are made of.
    pub(crate) version: Version,
}

/// An id that is defined, referred to, or both.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) definition: Option<Arc<Definition>>,
    /// The slots of the clusters, live or decommissioned, whose lists name it.
    pub(crate) holders: Arc<RoaringBitmap>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            defaults: Arc::default(),
            by_id: OrdMap::new(),
            by_name: GenericHashMap::default(),
            entries: Slots::default(),
            defined: 0,
            plain_len: 0,
            cycles: Arc::default(),
            version: Version::new(),
        }
    }
}

impl Catalogue {
    /// The empty catalogue of a type.
    pub(crate) fn of_type(ty: &ResourceType) -> Self {
        Self { defaults: fields_of(&ty.defaults).into(), ..Self::default() }
    }

    /// The type's defaults.
    pub(crate) fn defaults(&self) -> Source<'_> {
        &self.defaults
    }

    pub(crate) fn at(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot)
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Entry> {
        self.at(self.find_slot(id)?)
    }

    pub(crate) fn definition_at(&self, slot: Slot) -> Option<&Definition> {
        self.at(slot)?.definition.as_deref()
    }

    /// The slot of an id, if it has one.
    pub(crate) fn find_slot(&self, id: &str) -> Option<Slot> {
        self.by_name.get(id).copied()
    }

    /// How long a plain input is as a rule.
    pub(crate) fn mean_len(&self) -> usize {
        self.plain_len.checked_div(self.defined).unwrap_or_default()
    }

    /// All definitions, in the order of their ids.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.by_id.values().filter_map(|slot| self.definition_at(*slot))
    }

    /// The slot of an id; a new one, if it has none.
    pub(crate) fn slot_or_insert(&mut self, id: &str) -> Result<Slot, InvalidId> {
        match self.find_slot(id) {
            Some(slot) => Ok(slot),
            None => Ok(self.enter(Id::parse(id)?)),
        }
    }

    fn enter(&mut self, id: Id) -> Slot {
        let slot = self.entries.insert(Entry { id: id.clone(), definition: None, holders: Arc::default() });
        self.by_name.insert(id.clone(), slot);
        self.by_id.insert(id, slot);
        slot
    }

    /// Adds, replaces or removes a definition; returns the one that was there before.
    pub(crate) fn define(&mut self, id: &Id, definition: Option<Arc<Definition>>) -> Option<Arc<Definition>> {
        self.version = Version::new();
        let slot = match self.find_slot(id.as_str()) {
            Some(slot) => slot,
            None if definition.is_some() => self.enter(id.clone()),
            None => return None,
        };
        if let Some(new) = &definition {
            self.defined += 1;
            self.plain_len += new.plain.len();
        }
        let before = std::mem::replace(&mut self.entries.get_mut(slot)?.definition, definition);
        if let Some(old) = &before {
            self.defined -= 1;
            self.plain_len -= old.plain.len();
        }
        self.free_if_unused(slot);
        before
    }

    /// Searches for the cycles in which definitions depend on one another.
    pub(crate) fn find_cycles(&mut self) {
        let mut edges = vec![Vec::new(); self.entries.len()];
        for (slot, definition) in self.by_id.values().filter_map(|slot| Some((*slot, self.definition_at(*slot)?))) {
            let on = definition.depends_on.iter().filter_map(|on| Some(self.find_slot(&on.id)? as usize));
            edges[slot as usize] = on.collect();
        }
        self.cycles = Arc::new(Cycles::find(&edges));
    }

    /// Whether one definition depends on another that, directly or through others, depends on it in turn.
    pub(crate) fn is_in_cycle(&self, id: &str, on: &str) -> bool {
        // As a rule there is none, and nothing is looked up.
        let is_part = |(from, to): (Slot, Slot)| self.cycles.contain(from as usize, to as usize);
        !self.cycles.is_empty() && self.find_slot(id).zip(self.find_slot(on)).is_some_and(is_part)
    }

    /// Notes whether a cluster refers to what is in a slot.
    pub(crate) fn hold(&mut self, slot: Slot, cluster: Slot, holds: bool) {
        if let Some(entry) = self.entries.get_mut(slot)
            && entry.holders.contains(cluster) != holds
        {
            note(&mut entry.holders, cluster, holds);
            self.free_if_unused(slot);
        }
    }

    /// Notes all clusters that refer to what is in a slot.
    pub(crate) fn hold_all(&mut self, slot: Slot, clusters: RoaringBitmap) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.holders = Arc::new(clusters);
        }
    }

    /// Frees a slot that has no definition and that no cluster refers to.
    fn free_if_unused(&mut self, slot: Slot) {
        let is_unused = |entry: &&Entry| entry.definition.is_none() && entry.holders.is_empty();
        if let Some(id) = self.at(slot).filter(is_unused).map(|entry| entry.id.clone()) {
            self.by_id.remove(&id);
            self.by_name.remove(&id);
            self.entries.remove(slot);
        }
    }
}

/// Adds a slot to a set, or removes it.
pub(crate) fn note(set: &mut Arc<RoaringBitmap>, slot: Slot, is_in: bool) {
    let set = Arc::make_mut(set);
    if is_in {
        set.insert(slot);
    } else {
        set.remove(slot);
    }
}
