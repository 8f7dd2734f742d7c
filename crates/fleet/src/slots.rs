//! Numbered slots, so that others can refer to an item by four bytes instead of by its name.

use imbl::Vector;

/// The index of a slot.
pub(crate) type Slot = u32;

/// Items in slots. The collections are persistent, so a copy is cheap. A slot that became free is used again.
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
    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.items.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.items.get_mut(slot as usize)?.as_mut()
    }

    /// How many slots there are, free or not: every slot index is less.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Puts an item into a free slot.
    pub(crate) fn insert(&mut self, item: T) -> Slot {
        if let Some(slot) = self.free.pop_back() {
            self.items.set(slot as usize, Some(item));
            return slot;
        }
        self.items.push_back(Some(item));
        // Four thousand million items would not fit in memory.
        Slot::try_from(self.items.len() - 1).unwrap_or(Slot::MAX)
    }

    /// Replaces the item in a slot.
    pub(crate) fn replace(&mut self, slot: Slot, item: T) {
        self.items.set(slot as usize, Some(item));
    }

    /// Removes the item in a slot.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.items.set(slot as usize, None);
        self.free.push_back(slot);
    }
}
