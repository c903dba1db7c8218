//! The exchange of whole magazines of freed frames between threads: one lock operation for many frames.
//!
//! The locks and counts are `std`'s also in a model: the depot is a static, and under a lock there is nothing
//! to model.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::classes::{CLASSES, Class};
use super::magazine::Magazine;

/// The bytes of frames that are cached for each class; the rest goes back to the system. Not one bound for
/// all classes: a burst of one class would leave nothing for the others. Empty magazines are cached for the
/// next frames and do not count: they are small.
const DEPOT_BYTES: usize = 4 * 1024 * 1024;

static DEPOTS: [Depot; CLASSES] = [const { Depot::new() }; CLASSES];

/// The magazines of one class that belong to no thread. On a cache line of its own, because neighbouring
/// classes may be busy.
#[repr(align(64))]
struct Depot {
    /// The bytes of the frames in filled magazines, changed under the lock. A thread reads it without the lock: as
    /// long as it is zero, frames come from the system.
    bytes: AtomicUsize,
    magazines: Mutex<Magazines>,
}

// A depot is one cache line, and all of them are in the file of every program.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Depot>() == 64);

struct Magazines {
    filled: Vec<Magazine>,
    empty: Vec<Magazine>,
}

/// Exchanges an empty magazine for one with frames. If there is none, returns the empty one.
pub(super) fn take_filled(class: Class, empty: Option<Magazine>) -> Result<Magazine, Option<Magazine>> {
    let depot = &DEPOTS[class.number()];
    // A stale zero costs an allocation from the system; the frames are found next time.
    if depot.bytes.load(Ordering::Relaxed) == 0 {
        return Err(empty);
    }
    let mut magazines = depot.lock();
    let Some(filled) = magazines.filled.pop() else { return Err(empty) };
    depot.bytes.store(depot.bytes.load(Ordering::Relaxed) - filled.bytes(), Ordering::Relaxed);
    let unplaced = empty.map(|empty| put(&mut magazines.empty, empty));
    // Before a magazine for which there is no memory is freed.
    drop(magazines);
    drop(unplaced);
    Ok(filled)
}

/// Stores a magazine with frames, and returns an empty one in exchange, if there is one. Above the bound,
/// returns the frames to the system and the magazine to the caller.
pub(super) fn give_filled(mut filled: Magazine) -> Option<Magazine> {
    let bytes = filled.bytes();
    let depot = &DEPOTS[filled.class().number()];
    let mut magazines = depot.lock();
    let all = depot.bytes.load(Ordering::Relaxed) + bytes;
    if all <= DEPOT_BYTES {
        match put(&mut magazines.filled, filled) {
            Ok(()) => {
                depot.bytes.store(all, Ordering::Relaxed);
                return magazines.empty.pop();
            }
            Err(unplaced) => filled = unplaced,
        }
    }
    drop(magazines);
    filled.clear();
    Some(filled)
}

/// Returns an empty magazine, from the depot or a new one; or `None` if there is no memory.
pub(super) fn take_empty(class: Class) -> Option<Magazine> {
    let cached = DEPOTS[class.number()].lock().empty.pop();
    cached.or_else(|| Magazine::new(class))
}

/// Stores an empty magazine.
pub(super) fn give_empty(empty: Magazine) {
    let unplaced = put(&mut DEPOTS[empty.class().number()].lock().empty, empty);
    drop(unplaced);
}

/// Adds a magazine to a list. Returns it if there is no memory for the list, which must not abort the
/// process.
fn put(list: &mut Vec<Magazine>, magazine: Magazine) -> Result<(), Magazine> {
    if list.try_reserve(1).is_err() {
        return Err(magazine);
    }
    list.push(magazine);
    Ok(())
}

impl Depot {
    const fn new() -> Self {
        let magazines = Magazines { filled: Vec::new(), empty: Vec::new() };
        Self { bytes: AtomicUsize::new(0), magazines: Mutex::new(magazines) }
    }

    fn lock(&self) -> MutexGuard<'_, Magazines> {
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
