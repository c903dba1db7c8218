//! The items of a delay queue, sorted by time: a binary heap whose items know their place in it, so that each
//! can be removed or moved.
//!
//! 1. `heap` is ordered: no item is due before the one at its parent's place, `(place - 1) / 2`.
//! 2. `slots` has the items, each at an index that it keeps. `place` of a slot in use is its place in `heap`,
//!    and that entry has the index of the slot. Slots that are not in use are linked through `Free`.
//! 3. The generation of a slot counts up when its item is removed, so an old key does not find a new item. A slot
//!    whose generations are used up is not used again: its last key finds nothing for ever.

use core::cmp::Ordering;
use core::mem;
use std::time::Instant;

/// Items sorted by time, and by the order of insertion.
#[derive(Debug)]
pub(super) struct DelayHeap<T> {
    heap: Vec<Entry>,
    slots: Vec<Slot<T>>,
    /// The first slot that is not in use.
    free: Option<u32>,
    /// The number of times that were set so far: the source of sequence numbers.
    set: u64,
}

/// Identifies an item of a [`DelayQueue`](super::DelayQueue). It is of no use once the item was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DelayKey {
    index: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Due,
    index: u32,
}

/// A time, and a number that orders items of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    /// `None` if it is later than an `Instant` can be.
    at: Option<Instant>,
    order: u64,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    state: SlotState<T>,
}

#[derive(Debug)]
enum SlotState<T> {
    Used { value: T, place: usize },
    Free { next: Option<u32> },
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = match (self.at, other.at) {
            (Some(at), Some(other)) => at.cmp(&other),
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        };
        by_time.then(self.order.cmp(&other.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> DelayHeap<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let (heap, slots) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Self { heap, slots, free: None, set: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns the key and the time of the first item. The time is `None` if it never comes.
    pub(super) fn first(&self) -> Option<(DelayKey, Option<Instant>)> {
        let first = self.heap.first()?;
        Some((self.key_of(first.index), first.due.at))
    }

    /// Adds an item.
    ///
    /// # Panics
    /// If 2³² slots are in use or used up.
    pub(super) fn insert(&mut self, value: T, at: Option<Instant>) -> DelayKey {
        let place = self.heap.len();
        let state = SlotState::Used { value, place };
        let index = match self.free {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                if let SlotState::Free { next } = mem::replace(&mut slot.state, state) {
                    self.free = next;
                }
                index
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("a delay queue has fewer than 2³² slots");
                self.slots.push(Slot { generation: 0, state });
                index
            }
        };
        let due = self.due(at);
        self.heap.push(Entry { due, index });
        self.rise(place);
        self.key_of(index)
    }

    /// Removes an item. Returns it with its time.
    pub(super) fn remove(&mut self, key: DelayKey) -> Option<(T, Option<Instant>)> {
        let place = self.place_of(key)?;
        let removed = self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.settle(place);
        }
        let slot = &mut self.slots[key.index as usize];
        let state = mem::replace(&mut slot.state, SlotState::Free { next: self.free });
        // Rule 3. Without a next generation, nothing leads to the slot any more, and it stays free.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free = Some(key.index);
        }
        match state {
            SlotState::Used { value, .. } => Some((value, removed.due.at)),
            SlotState::Free { .. } => unreachable!("rule 2: the slot had a place in the heap"),
        }
    }

    /// Sets the time of an item. Returns false if there is no such item.
    pub(super) fn set(&mut self, key: DelayKey, at: Option<Instant>) -> bool {
        let Some(place) = self.place_of(key) else { return false };
        let due = self.due(at);
        self.heap[place].due = due;
        self.settle(place);
        true
    }

    /// Returns the time of an item.
    pub(super) fn time_of(&self, key: DelayKey) -> Option<Option<Instant>> {
        self.place_of(key).map(|place| self.heap[place].due.at)
    }

    /// Lets the slot of an item have been used this often before. Returns the item's new key.
    #[cfg(feature = "testing")]
    pub(super) fn set_generation(&mut self, key: DelayKey, generation: u32) -> DelayKey {
        assert!(self.place_of(key).is_some(), "the key finds no item");
        self.slots[key.index as usize].generation = generation;
        self.key_of(key.index)
    }

    /// Returns an item.
    pub(super) fn get(&self, key: DelayKey) -> Option<&T> {
        let slot = self.slots.get(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        match &slot.state {
            SlotState::Used { value, .. } => Some(value),
            SlotState::Free { .. } => None,
        }
    }

    fn due(&mut self, at: Option<Instant>) -> Due {
        self.set += 1;
        Due { at, order: self.set }
    }

    fn key_of(&self, index: u32) -> DelayKey {
        DelayKey { index, generation: self.slots[index as usize].generation }
    }

    fn place_of(&self, key: DelayKey) -> Option<usize> {
        let slot = self.slots.get(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        match slot.state {
            SlotState::Used { place, .. } => Some(place),
            SlotState::Free { .. } => None,
        }
    }

    /// Restores rule 1 for the entry at `place`, whose time may have changed either way, and rule 2.
    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    /// Moves an entry towards the front while it is due before its parent. Returns its place.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].due <= self.heap[place].due {
                break;
            }
            self.heap.swap(place, parent);
            self.note_place(place);
            place = parent;
        }
        self.note_place(place);
        place
    }

    /// Moves an entry towards the end while one of its children is due before it.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children =
                [2 * place + 1, 2 * place + 2].into_iter().filter(|child| *child < self.heap.len());
            let Some(first) = children.min_by_key(|child| self.heap[*child].due) else { break };
            if self.heap[place].due <= self.heap[first].due {
                break;
            }
            self.heap.swap(place, first);
            self.note_place(place);
            place = first;
        }
        self.note_place(place);
    }

    /// Restores rule 2 for the entry at `place`.
    fn note_place(&mut self, new: usize) {
        if let Some(entry) = self.heap.get(new)
            && let SlotState::Used { place, .. } = &mut self.slots[entry.index as usize].state
        {
            *place = new;
        }
    }
}
