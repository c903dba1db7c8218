//! Where threads pass each other whole magazines of freed frames: one lock for many frames.
//!
//! The locks and counts are `std`'s also in a model: the depot is a static, and under a lock there is nothing to model.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::classes::{CLASSES, Class};
use super::magazine::Magazine;

/// So many bytes of frames of each class are kept; what is over goes back to the system. Not one bound for all classes:
/// a burst of one would leave no room for the others. The magazines that were emptied meanwhile are kept for the next
/// frames, and are not counted: they are small.
const DEPOT_BYTES: usize = 4 * 1024 * 1024;

static DEPOTS: [Depot; CLASSES] = [const { Depot::new() }; CLASSES];

/// The magazines of one class that no thread has. On a cache line of its own: the next class may be busy.
#[repr(align(64))]
struct Depot {
    /// How many with frames there are: a thread whose frames come from the system, as there are none yet, sees this
    /// without the lock.
    filled: AtomicUsize,
    magazines: Mutex<Magazines>,
}

struct Magazines {
    filled: Vec<Magazine>,
    /// The bytes of the frames in them.
    bytes: usize,
    empty: Vec<Magazine>,
}

/// A magazine with frames, in exchange for an empty one. If there is none, the empty one is handed back.
///
/// # Safety
/// The magazine is empty and of this class.
pub(super) unsafe fn take_filled(
    class: Class,
    empty: Option<Magazine>,
) -> Result<Magazine, Option<Magazine>> {
    let depot = &DEPOTS[class.number()];
    // A stale zero costs a visit to the system; the frames are found next time.
    if depot.filled.load(Ordering::Relaxed) == 0 {
        return Err(empty);
    }
    let mut magazines = depot.lock();
    let Some(filled) = magazines.filled.pop() else { return Err(empty) };
    magazines.bytes -= filled.bytes(class);
    depot.filled.store(magazines.filled.len(), Ordering::Relaxed);
    let unplaced = empty.and_then(|empty| put(&mut magazines.empty, empty).err());
    drop(magazines);
    if let Some(unplaced) = unplaced {
        // SAFETY: the caller's.
        unsafe { unplaced.destroy(class) };
    }
    Ok(filled)
}

/// Takes a magazine with frames, in exchange for one that was left over, if there is one. If it is over the bound,
/// its frames go to the system, and it is handed back itself.
///
/// # Safety
/// The magazine is of this class.
pub(super) unsafe fn give_filled(class: Class, mut filled: Magazine) -> Option<Magazine> {
    let bytes = filled.bytes(class);
    let depot = &DEPOTS[class.number()];
    let mut magazines = depot.lock();
    if magazines.bytes + bytes <= DEPOT_BYTES {
        match put(&mut magazines.filled, filled) {
            Ok(()) => {
                magazines.bytes += bytes;
                depot.filled.store(magazines.filled.len(), Ordering::Relaxed);
                return magazines.empty.pop();
            }
            Err(unplaced) => filled = unplaced,
        }
    }
    drop(magazines);
    // SAFETY: the caller's.
    unsafe { filled.empty(class) };
    Some(filled)
}

/// An empty magazine: one that was left over, or a new one; `None` if there is no memory.
pub(super) fn take_empty(class: Class) -> Option<Magazine> {
    let left_over = DEPOTS[class.number()].lock().empty.pop();
    left_over.or_else(|| Magazine::new(class))
}

/// Takes an empty magazine.
///
/// # Safety
/// The magazine is empty and of this class.
pub(super) unsafe fn give_empty(class: Class, empty: Magazine) {
    let unplaced = put(&mut DEPOTS[class.number()].lock().empty, empty);
    if let Err(unplaced) = unplaced {
        // SAFETY: the caller's.
        unsafe { unplaced.destroy(class) };
    }
}

/// To have no memory for the list is no reason to end the process.
fn put(list: &mut Vec<Magazine>, magazine: Magazine) -> Result<(), Magazine> {
    if list.try_reserve(1).is_err() {
        return Err(magazine);
    }
    list.push(magazine);
    Ok(())
}

impl Depot {
    const fn new() -> Self {
        let magazines = Magazines { filled: Vec::new(), bytes: 0, empty: Vec::new() };
        Self { filled: AtomicUsize::new(0), magazines: Mutex::new(magazines) }
    }

    fn lock(&self) -> MutexGuard<'_, Magazines> {
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
