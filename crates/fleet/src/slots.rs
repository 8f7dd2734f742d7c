//! Places with numbers: what others refer to by four bytes instead of by a name.

use imbl::Vector;

/// The number of a place.
pub(crate) type Slot = u32;

/// Items in places. A copy is a pointer, as of all that a snapshot is made of; a place that was left is taken again.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T: Clone> {
    items: Vector<Option<T>>,
    free: Vector<Slot>,
}

impl<T: Clone> Default for Slots<T> {
    fn default() -> Self {
        Self { items: Vector::new(), free: Vector::new() }
    }
}

impl<T: Clone> Slots<T> {
    pub(crate) fn get(&self, place: Slot) -> Option<&T> {
        self.items.get(place as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: Slot) -> Option<&mut T> {
        self.items.get_mut(place as usize)?.as_mut()
    }

    /// How many places there are, free or not: each number of one is less.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Puts an item into a free place.
    pub(crate) fn insert(&mut self, item: T) -> Slot {
        if let Some(place) = self.free.pop_back() {
            self.items.set(place as usize, Some(item));
            return place;
        }
        self.items.push_back(Some(item));
        // More than four thousand million items would not be in memory.
        Slot::try_from(self.items.len() - 1).unwrap_or(Slot::MAX)
    }

    /// Puts an item in the place of another.
    pub(crate) fn replace(&mut self, place: Slot, item: T) {
        self.items.set(place as usize, Some(item));
    }

    /// Takes an item out of its place.
    pub(crate) fn remove(&mut self, place: Slot) {
        self.items.set(place as usize, None);
        self.free.push_back(place);
    }
}
