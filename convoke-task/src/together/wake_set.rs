//! Wakers for children inside one task. A wake flag per child adds the child's key to the set of woken ones,
//! and the owner of the set is woken once for all of them. No unsafe code: a lock, held for a few
//! instructions.
//!
//! Flags may be set on any thread. All else is called by the owner.

use core::fmt;
use core::task::Waker;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::{Mutex, MutexGuard};

use convoke_core::raw::{FrameArc, FrameMemory, FrameVec, FrameWake, wake, wake_if_any};

use crate::reserve::reserve_one;

/// Set of woken children, as the owner has it. Flags that outlive it wake nothing.
pub struct WakeSet {
    shared: FrameArc<SharedWakes>,
}

struct SharedWakes {
    state: Mutex<WakeState>,
}

struct WakeState {
    /// The keys of the woken children.
    woken: FrameVec<Key>,
    /// The owner's waker, while it waits.
    owner: Option<Waker>,
}

/// Identity of a child: its index, and a serial that tells it from later children with the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Index of the child in the owner's storage.
    pub index: usize,
    /// Serial of the child among all that had this index.
    pub serial: u64,
}

/// Target of a child's waker.
pub struct WakeFlag {
    key: Key,
    /// True if the key is in the set, or was taken from it and the flag not cleared yet. The thread that
    /// changes it to true adds the key, so that the key is there once.
    is_set: AtomicBool,
    shared: FrameArc<SharedWakes>,
}

impl SharedWakes {
    fn lock(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl WakeSet {
    /// Creates an empty set, in memory of the running task.
    pub fn new() -> Self {
        let state = WakeState { woken: FrameMemory::vec_in_task(), owner: None };
        Self { shared: FrameArc::in_task(SharedWakes { state: Mutex::new(state) }) }
    }

    /// Creates the flag of a child. It is set, but its key is not in the set: the caller polls the child a
    /// first time.
    pub fn flag(&self, key: Key) -> FrameArc<WakeFlag> {
        FrameArc::in_task(WakeFlag { key, is_set: AtomicBool::new(true), shared: self.shared.clone() })
    }

    /// Returns a flag that wakes the owner for something other than a child.
    pub(crate) fn owner(&self) -> OwnerFlag {
        OwnerFlag { shared: self.shared.clone() }
    }

    /// Moves the keys of the woken children to `into`. The owner polls them now, so its waker is dropped
    /// until it waits again.
    pub fn take_woken(&self, into: &mut FrameVec<Key>) {
        let mut state = self.shared.lock();
        let owner = state.owner.take();
        if into.is_empty() {
            core::mem::swap(into, &mut state.woken);
            drop(state);
        } else {
            let mut woken = core::mem::replace(&mut state.woken, FrameMemory::vec_in_task());
            drop(state);
            // Without the lock: the allocator may be code of the program, and wake a child.
            into.append(&mut woken);
        }
        drop(owner);
    }

    /// Stores the owner's waker. If a flag was set since the last [`take_woken`](WakeSet::take_woken), wakes
    /// it at once instead, so that other tasks run before the owner polls again.
    pub fn wait(&self, waker: &Waker) {
        // Cloned and dropped without the lock: a waker may run foreign code.
        let clone = waker.clone();
        let mut state = self.shared.lock();
        if state.woken.is_empty() {
            let before = state.owner.replace(clone);
            drop(state);
            drop(before);
        } else {
            drop(state);
            wake(clone);
        }
    }
}

impl Default for WakeSet {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WakeSet {
    fn drop(&mut self) {
        let owner = self.shared.lock().owner.take();
        drop(owner);
    }
}

impl WakeFlag {
    /// Clears the flag, before the owner polls the child whose key it has taken.
    pub fn clear(&self) {
        let was_set = self.is_set.swap(false, Ordering::AcqRel);
        debug_assert!(was_set, "a flag is cleared once for each time that its key was in the set");
    }

    /// Clears the flag, and returns true if it was set. For owners whose keys may be in the set more than
    /// once: the child is polled if this is true.
    pub(crate) fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }

    /// Makes later wakes do nothing: the child has ended.
    pub fn disable(&self) {
        self.is_set.store(true, Ordering::Release);
    }

    /// Wakes the child: adds its key to the set, and wakes the owner if it waits.
    pub fn set(&self) {
        if self.is_set.swap(true, Ordering::AcqRel) {
            return;
        }
        let lock = || self.shared.lock();
        let mut state = reserve_one(lock(), lock, |state| &mut state.woken);
        state.woken.push(self.key);
        let owner = state.owner.take();
        drop(state);
        // Outside the lock: a waker may run foreign code.
        wake_if_any(owner);
    }
}

impl FrameWake for WakeFlag {
    fn wake(this: &FrameArc<Self>) {
        this.set();
    }
}

/// Flag that wakes the owner of a set.
#[derive(Clone)]
pub(crate) struct OwnerFlag {
    shared: FrameArc<SharedWakes>,
}

impl OwnerFlag {
    pub(crate) fn set(&self) {
        let owner = self.shared.lock().owner.take();
        wake_if_any(owner);
    }
}

impl fmt::Debug for WakeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeSet").finish_non_exhaustive()
    }
}

impl fmt::Debug for WakeFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeFlag").field("key", &self.key).finish_non_exhaustive()
    }
}
