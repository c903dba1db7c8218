//! The names of the work in a scope, found by a key. Free slots are reused, so that work that comes and goes
//! allocates nothing.

use convoke_core::raw::{FrameMemory, FrameVec};

use crate::async_scope::WorkName;

/// The names of all work in the scope.
#[derive(Debug)]
pub(super) struct NameSlab {
    slots: FrameVec<Slot>,
    /// The slot that was freed last; it links to the one before it.
    free: Option<usize>,
    len: usize,
}

#[derive(Debug)]
enum Slot {
    Used(WorkName),
    Free { next: Option<usize> },
}

/// The index of a name in the slab. Its owner removes the name once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key(usize);

impl Default for NameSlab {
    fn default() -> Self {
        Self { slots: FrameMemory::vec_in_task(), free: None, len: 0 }
    }
}

impl NameSlab {
    /// Inserts a name.
    pub(super) fn enter(&mut self, name: WorkName) -> Key {
        self.len += 1;
        let Some(slot) = self.free else {
            self.slots.push(Slot::Used(name));
            return Key(self.slots.len() - 1);
        };
        if let Slot::Free { next } = core::mem::replace(&mut self.slots[slot], Slot::Used(name)) {
            self.free = next;
        }
        Key(slot)
    }

    /// Removes a name.
    pub(super) fn leave(&mut self, key: Key) {
        self.slots[key.0] = Slot::Free { next: self.free.replace(key.0) };
        self.len -= 1;
    }

    /// Returns the name of a key.
    pub(super) fn name(&self, key: &Key) -> Option<WorkName> {
        match self.slots.get(key.0) {
            Some(Slot::Used(name)) => Some(*name),
            _ => None,
        }
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns all names.
    pub(super) fn names(&self) -> Vec<WorkName> {
        let used = |slot: &Slot| match slot {
            Slot::Used(name) => Some(*name),
            Slot::Free { .. } => None,
        };
        self.slots.iter().filter_map(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_are_reused() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(WorkName::Given);
        let mut slab = NameSlab::default();
        let (first, second, third) = (slab.enter(a), slab.enter(b), slab.enter(c));
        slab.leave(second);
        slab.leave(first);
        assert_eq!((slab.len(), slab.names()), (1, vec![c]));
        assert_eq!([slab.enter(a), slab.enter(d)], [Key(0), Key(1)]);
        assert_eq!((slab.len(), slab.slots.len(), slab.name(&third)), (3, 3, Some(c)));
        assert_eq!(slab.names(), [a, d, c]);
    }
}
