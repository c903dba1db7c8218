//! Where tasks are found: a list, for each thread or so, of the parents that were opened there. It knows parents and names,
//! not tasks: starting a task costs nothing here.
//!
//! 1. `next` and `pointed_by` of an entry in a list belong to whoever has the lock of its shard; all else is written before it is
//!    linked, by who links it.
//! 2. Whoever links an entry keeps it, and what it leads to, where it is until it was unlinked. `look` is called under the
//!    lock, and so not any more once `unlink` has returned.
//! 3. The lock of a shard comes before that of a parent: nobody links or unlinks while he holds one of those. Nothing that
//!    is done under either runs code of the program, or asks for memory.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::{self, NonNull};

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::thread_local;
use crossbeam_utils::CachePadded;

use super::found::Found;
use convoke_core::raw::SpinLock;

/// Enough for threads not to meet there; the rest share.
const SHARDS: usize = 32;

/// A parent's place in the registry. It lies in the parent, and is taken out when it is dropped, if not before.
pub(crate) struct Entry {
    next: Cell<*const Entry>,
    /// What points to this entry: the head of the list, or `next` of the one before it.
    pointed_by: Cell<*const Cell<*const Entry>>,
    /// The shard, or `UNKNOWN` if it is in no list. Not changed by others.
    shard: Cell<usize>,
    /// How many had been linked there before.
    order: Cell<u64>,
    parent: Cell<NonNull<()>>,
    look: Cell<unsafe fn(NonNull<()>, &mut Found)>,
    /// Until `drop` has taken it out of its list, those beside it in there write to it. Only for types that are not `Unpin` may
    /// they do so while `drop` has its `&mut self`: so this one is not, nor any parent that has one.
    _pinned: PhantomPinned,
}

struct Shard {
    newest: Cell<*const Entry>,
    linked: Cell<u64>,
}

// SAFETY: rules 1 and 2.
unsafe impl Send for Shard {}

static REGISTRY: [CachePadded<SpinLock<Shard>>; SHARDS] = [const {
    CachePadded::new(SpinLock::new(Shard { newest: Cell::new(ptr::null()), linked: Cell::new(0) }))
}; SHARDS];

const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// The shard of this thread.
    static HERE: Cell<usize> = Cell::new(UNKNOWN);
}

#[inline]
fn here() -> usize {
    match HERE.with(Cell::get) {
        UNKNOWN => assign(),
        here => here,
    }
}

/// Threads take turns, and so the first few have a shard to themselves.
#[cold]
fn assign() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let shard = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    HERE.with(|here| here.set(shard));
    shard
}

impl Entry {
    /// In no list.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(ptr::null()),
            pointed_by: Cell::new(ptr::null()),
            shard: Cell::new(UNKNOWN),
            order: Cell::new(0),
            parent: Cell::new(NonNull::dangling()),
            look: Cell::new(|_, _| {}),
            _pinned: PhantomPinned,
        }
    }

    /// From now on those who look call `look` with the parent.
    ///
    /// # Safety
    /// The entry is in no list, and rules 2 and 3: it stays where it is until it was unlinked, `look` may be called with
    /// `parent` until then, and the caller holds no lock.
    #[inline]
    pub(crate) unsafe fn link(&self, parent: NonNull<()>, look: unsafe fn(NonNull<()>, &mut Found)) {
        let here = here();
        self.shard.set(here);
        self.parent.set(parent);
        self.look.set(look);
        let shard = REGISTRY[here].lock();
        let newest = shard.newest.replace(self);
        self.next.set(newest);
        self.pointed_by.set(&shard.newest);
        self.order.set(shard.linked.get());
        shard.linked.set(shard.linked.get() + 1);
        // SAFETY: rules 1 and 2.
        if let Some(next) = unsafe { newest.as_ref() } {
            next.pointed_by.set(&self.next);
        }
    }

    /// Nobody looks any more when this returns.
    ///
    /// # Safety
    /// By one thread at a time, which holds no lock: rule 3.
    #[inline]
    pub(crate) unsafe fn unlink(&self) {
        let shard = self.shard.replace(UNKNOWN);
        if shard != UNKNOWN {
            let shard = REGISTRY[shard].lock();
            let (next, pointed_by) = (self.next.get(), self.pointed_by.get());
            // SAFETY: rules 1 and 2.
            unsafe {
                (*pointed_by).set(next);
                if let Some(next) = next.as_ref() {
                    next.pointed_by.set(pointed_by);
                }
            }
            drop(shard);
        }
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: we have it to ourselves; who drops a parent holds no lock.
        unsafe { self.unlink() };
    }
}

/// Looks at all parents there are.
pub fn look_at_all(found: &mut Found) {
    for (number, shard) in REGISTRY.iter().enumerate() {
        let before = found.mark();
        loop {
            let guard = shard.lock();
            let mut next = guard.newest.get();
            // SAFETY: rules 1 and 2: we hold the lock.
            while let Some(entry) = unsafe { next.as_ref() } {
                found.comes_from(entry.order.get(), number);
                // SAFETY: as above.
                unsafe { (entry.look.get())(entry.parent.get(), found) };
                next = entry.next.get();
            }
            drop(guard);
            if !found.wants_more_room(before) {
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
