//! The definitions of one type, and who refers to them.

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

/// A version of something; no two are alike while a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The definitions of one type. Every id that is defined or referred to has a place here, so that the many references
/// of a fleet are numbers, and a poll finds definitions without comparing names.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    /// The type's defaults, the weakest source of every input.
    defaults: Arc<[Field<'static>]>,
    places: OrdMap<Id, Slot>,
    /// The same places, found without comparing names on the way: a poll looks up each dependency here.
    by_name: GenericHashMap<Id, Slot, RandomState, DefaultSharedPtr>,
    entries: Slots<Entry>,
    /// How many definitions there are.
    defined: usize,
    /// How long their plain inputs are together.
    plain_len: usize,
    /// The cycles in which definitions depend on one another, by their places; those of the definitions when they were last
    /// looked for, which is once for every change of who depends on whom.
    cycles: Arc<Cycles>,
    /// Changes with everything here that answers are made of.
    pub(crate) version: Version,
}

/// An id that is defined, referred to, or both.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) definition: Option<Arc<Definition>>,
    /// The places of the clusters, live or decommissioned, whose lists name it.
    pub(crate) holders: Arc<RoaringBitmap>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            defaults: Arc::default(),
            places: OrdMap::new(),
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

    pub(crate) fn at(&self, place: Slot) -> Option<&Entry> {
        self.entries.get(place)
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Entry> {
        self.at(self.find_place(id)?)
    }

    pub(crate) fn definition_at(&self, place: Slot) -> Option<&Definition> {
        self.at(place)?.definition.as_deref()
    }

    /// The place of an id, if it has one.
    pub(crate) fn find_place(&self, id: &str) -> Option<Slot> {
        self.by_name.get(id).copied()
    }

    /// How long a plain input is as a rule.
    pub(crate) fn mean_len(&self) -> usize {
        self.plain_len.checked_div(self.defined).unwrap_or_default()
    }

    /// All definitions, in the order of their ids.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.places.values().filter_map(|place| self.definition_at(*place))
    }

    /// The place of an id, which is made if it is not there.
    pub(crate) fn place(&mut self, id: &str) -> Result<Slot, InvalidId> {
        match self.find_place(id) {
            Some(place) => Ok(place),
            None => Ok(self.enter(Id::parse(id)?)),
        }
    }

    fn enter(&mut self, id: Id) -> Slot {
        let place = self.entries.insert(Entry { id: id.clone(), definition: None, holders: Arc::default() });
        self.by_name.insert(id.clone(), place);
        self.places.insert(id, place);
        place
    }

    /// Takes in a definition, or lets go of it; answers the one that was there before.
    pub(crate) fn define(&mut self, id: &Id, definition: Option<Arc<Definition>>) -> Option<Arc<Definition>> {
        self.version = Version::new();
        let place = match self.find_place(id.as_str()) {
            Some(place) => place,
            None if definition.is_some() => self.enter(id.clone()),
            None => return None,
        };
        if let Some(new) = &definition {
            self.defined += 1;
            self.plain_len += new.plain.len();
        }
        let before = std::mem::replace(&mut self.entries.get_mut(place)?.definition, definition);
        if let Some(old) = &before {
            self.defined -= 1;
            self.plain_len -= old.plain.len();
        }
        self.tidy(place);
        before
    }

    /// Looks for the cycles in which definitions depend on one another.
    pub(crate) fn find_cycles(&mut self) {
        let mut edges = vec![Vec::new(); self.entries.len()];
        for (place, definition) in self.places.values().filter_map(|place| Some((*place, self.definition_at(*place)?)))
        {
            let on = definition.depends_on.iter().filter_map(|on| Some(self.find_place(&on.id)? as usize));
            edges[place as usize] = on.collect();
        }
        self.cycles = Arc::new(Cycles::find(&edges));
    }

    /// Whether one definition depends on another that, directly or through others, depends on it in turn.
    pub(crate) fn is_in_cycle(&self, id: &str, on: &str) -> bool {
        // As a rule there is none, and nothing is looked up.
        let is_part = |(from, to): (Slot, Slot)| self.cycles.contain(from as usize, to as usize);
        !self.cycles.is_empty() && self.find_place(id).zip(self.find_place(on)).is_some_and(is_part)
    }

    /// Notes that a cluster names what is at a place, or does so no longer.
    pub(crate) fn hold(&mut self, place: Slot, cluster: Slot, holds: bool) {
        if let Some(entry) = self.entries.get_mut(place)
            && entry.holders.contains(cluster) != holds
        {
            note(&mut entry.holders, cluster, holds);
            self.tidy(place);
        }
    }

    /// Notes all clusters that name what is at a place.
    pub(crate) fn hold_all(&mut self, place: Slot, clusters: RoaringBitmap) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.holders = Arc::new(clusters);
        }
    }

    /// Gives up a place that nobody needs.
    fn tidy(&mut self, place: Slot) {
        let needless = |entry: &&Entry| entry.definition.is_none() && entry.holders.is_empty();
        if let Some(id) = self.at(place).filter(needless).map(|entry| entry.id.clone()) {
            self.places.remove(&id);
            self.by_name.remove(&id);
            self.entries.remove(place);
        }
    }
}

/// Puts a place into a set, or takes it out.
pub(crate) fn note(set: &mut Arc<RoaringBitmap>, place: Slot, is_in: bool) {
    let set = Arc::make_mut(set);
    if is_in {
        set.insert(place);
    } else {
        set.remove(place);
    }
}
