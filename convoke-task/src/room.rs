//! Room for one more item in a vector that a lock guards.
//!
//! The memory is that of a frame allocator, which may be code of the program. That code is called without the lock: it may
//! use what the lock guards, as every code of the program may.

use convoke_core::raw::sync::MutexGuard;
use convoke_core::raw::{FrameMemory, FrameVec};

/// Makes room for one more item in the vector that `of` returns. If the vector is full, the lock is released and taken again:
/// what the caller has seen before may have changed.
#[inline]
pub(crate) fn for_one_more<'a, S, T>(
    mut state: MutexGuard<'a, S>,
    lock: impl Fn() -> MutexGuard<'a, S>,
    of: impl Fn(&mut S) -> &mut FrameVec<T>,
) -> MutexGuard<'a, S> {
    while is_full(of(&mut state)) {
        let (room, memory) = larger(of(&mut state));
        drop(state);
        let mut spare = FrameVec::with_capacity_in(room, memory);
        state = lock();
        let vector = of(&mut state);
        if vector.len() < spare.capacity() {
            spare.append(vector);
            core::mem::swap(&mut spare, vector);
        }
        drop(state);
        drop(spare);
        state = lock();
    }
    state
}

fn is_full<T>(vector: &FrameVec<T>) -> bool {
    vector.len() == vector.capacity()
}

/// Returns the capacity of a vector with room for more, and the memory for it.
#[cold]
#[inline(never)]
fn larger<T>(full: &FrameVec<T>) -> (usize, FrameMemory) {
    ((2 * full.len()).max(4), full.allocator().clone())
}
