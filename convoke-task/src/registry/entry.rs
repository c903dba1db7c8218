//! The lists of parents: a few shards, each with a lock. A thread uses the shard that it was assigned. The
//! rules:
//!
//! 1. `next` and `pointed_by` of a linked entry, and the lists themselves, belong to the holder of the
//!    shard's lock. All other fields are written before the entry is linked, by the thread that links it.
//! 2. The thread that links an entry keeps it, and what it leads to, in place until it was unlinked. `visit`
//!    is called under the lock, and so not after `unlink` has returned.
//! 3. The lock of a shard is taken before that of a parent: a thread that holds the lock of a parent neither
//!    links nor unlinks. Under either lock no code of the program runs and no memory is allocated.
//!
//! It is not `IntrusiveList`, because every scope links and unlinks an entry: that list is a ring, which touches two neighbours for
//! each of them, and this one touches one.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::{self, NonNull};

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::thread_local;

use super::found::{Found, Visit};
use convoke_core::raw::SpinLock;

/// Enough for few threads to contend; more threads share shards.
const SHARDS: usize = 32;

/// The entry of a parent in the registry. It is a field of the parent, and is unlinked when it is dropped, if
/// not before.
pub(crate) struct Entry {
    next: Cell<*const Entry>,
    /// The link that points to this entry: the head of the list, or `next` of the entry before it.
    pointed_by: Cell<*const Cell<*const Entry>>,
    /// The index of the shard, or `UNKNOWN` if it is not linked. Written only by the thread that links and
    /// unlinks it.
    shard: Cell<usize>,
    /// The number of entries that had been linked in the shard before.
    order: Cell<u64>,
    parent: Cell<NonNull<()>>,
    /// Adds the tasks of the parent to a `Found`.
    visit: Cell<unsafe fn(NonNull<()>, &mut Found)>,
    /// Until `drop` has unlinked it, its neighbours in the list write to it. They may do so while `drop` has
    /// `&mut self` only if the type is not `Unpin`: so this type is not, nor is any parent that has one.
    _pinned: PhantomPinned,
}

struct Shard {
    newest: Cell<*const Entry>,
    linked: Cell<u64>,
}

// SAFETY: rule 1: the list is used under the lock; rule 2: entries stay until they are unlinked.
unsafe impl Send for Shard {}

impl Shard {
    /// Returns the linked entry at this address, or `None` if that is null.
    #[inline]
    fn linked_at(&self, entry: *const Entry) -> Option<&Entry> {
        // SAFETY: rules 1 and 2: `self` is borrowed from the lock, and linked entries are alive.
        unsafe { entry.as_ref() }
    }
}

/// A shard on cache lines of its own: two of 64 bytes, because processors fetch them in pairs.
#[repr(align(128))]
struct LockedShard(SpinLock<Shard>);

static REGISTRY: [LockedShard; SHARDS] =
    [const { LockedShard(SpinLock::new(Shard { newest: Cell::new(ptr::null()), linked: Cell::new(0) })) };
        SHARDS];

const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// The shard of this thread.
    static HERE: Cell<usize> = Cell::new(UNKNOWN);
}

/// Returns the index of this thread's shard.
#[inline]
fn here() -> usize {
    match HERE.with(Cell::get) {
        UNKNOWN => assign(),
        here => here,
    }
}

/// Assigns a shard to this thread, round-robin: the first few threads have one to themselves.
#[cold]
fn assign() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let shard = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    HERE.with(|here| here.set(shard));
    shard
}

impl Entry {
    /// Creates an entry that is not linked.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(ptr::null()),
            pointed_by: Cell::new(ptr::null()),
            shard: Cell::new(UNKNOWN),
            order: Cell::new(0),
            parent: Cell::new(NonNull::dangling()),
            visit: Cell::new(|_, _| {}),
            _pinned: PhantomPinned,
        }
    }

    /// Links the entry: inspectors visit the parent from now on.
    ///
    /// # Safety
    /// The entry is not linked. Rules 2 and 3: entry and parent stay where they are, and the parent may be
    /// visited by any thread, until the entry was unlinked; and the caller holds no lock of a parent.
    #[inline]
    pub(crate) unsafe fn link<T: Visit>(&self, parent: NonNull<T>) {
        let here = here();
        self.shard.set(here);
        self.parent.set(parent.cast());
        // SAFETY: rule 2: the parent, which is a `T`, is alive while the entry is linked, and so while this is
        // called.
        self.visit.set(|parent, found| unsafe { parent.cast::<T>().as_ref() }.visit(found));
        let shard = REGISTRY[here].0.lock();
        let newest = shard.newest.replace(self);
        self.next.set(newest);
        self.pointed_by.set(&shard.newest);
        self.order.set(shard.linked.get());
        shard.linked.set(shard.linked.get() + 1);
        if let Some(next) = shard.linked_at(newest) {
            next.pointed_by.set(&self.next);
        }
    }

    /// Unlinks the entry: no inspector uses it when this returns.
    ///
    /// # Safety
    /// Called by one thread at a time, which holds no lock of a parent: rule 3.
    #[inline]
    pub(crate) unsafe fn unlink(&self) {
        let shard = self.shard.replace(UNKNOWN);
        if shard != UNKNOWN {
            let shard = REGISTRY[shard].0.lock();
            let (next, pointed_by) = (self.next.get(), self.pointed_by.get());
            // SAFETY: rules 1 and 2: the lock is held, and what points to this entry is the head of the list, or
            // in a linked entry, which is alive.
            unsafe { (*pointed_by).set(next) };
            if let Some(next) = shard.linked_at(next) {
                next.pointed_by.set(pointed_by);
            }
            drop(shard);
        }
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `&mut self` says that no other thread links or unlinks it. A thread that drops a parent
        // holds no lock of one: rule 3.
        unsafe { self.unlink() };
    }
}

/// Visits all parents, and collects their tasks.
pub fn visit_all(found: &mut Found) {
    for (index, shard) in REGISTRY.iter().enumerate() {
        let before = found.mark();
        loop {
            let guard = shard.0.lock();
            let mut next = guard.newest.get();
            while let Some(entry) = guard.linked_at(next) {
                found.comes_from(entry.order.get(), index);
                // SAFETY: rule 2: `visit` may be called with `parent` while the entry is linked, and the lock
                // is held.
                unsafe { (entry.visit.get())(entry.parent.get(), found) };
                next = entry.next.get();
            }
            drop(guard);
            if !found.grow_if_refused(before) {
                break;
            }
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    /// An inherent constant takes precedence over that of a trait.
    struct Is<T>(core::marker::PhantomData<T>);

    trait IsNot {
        const UNPIN: bool = false;
    }

    impl<T> IsNot for Is<T> {}

    #[allow(dead_code, reason = "it would be used if `Entry` were `Unpin`")]
    impl<T: Unpin> Is<T> {
        const UNPIN: bool = true;
    }

    #[test]
    fn an_entry_is_not_unpin_because_its_neighbours_write_to_it() {
        const { assert!(!Is::<Entry>::UNPIN) };
    }
}
