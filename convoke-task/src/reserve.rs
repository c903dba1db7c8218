//! Capacity for one more item in a vector that a lock guards.
//!
//! The memory is that of a frame allocator, which may be code of the program. That code is called without the lock: it may
//! use what the lock guards, as every code of the program may.

use convoke_core::raw::sync::MutexGuard;
use convoke_core::raw::{FrameMemory, FrameVec};

/// Reserves capacity for one more item in the vector that `of` returns. If the vector is full, the lock is released and taken again:
/// what the caller has seen before may have changed.
#[inline]
pub(crate) fn reserve_one<'a, S, T>(
    mut state: MutexGuard<'a, S>,
    lock: impl Fn() -> MutexGuard<'a, S>,
    of: impl Fn(&mut S) -> &mut FrameVec<T>,
) -> MutexGuard<'a, S> {
    while is_full(of(&mut state)) {
        let (capacity, memory) = larger(of(&mut state));
        drop(state);
        let mut spare = FrameVec::with_capacity_in(capacity, memory);
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

/// Returns the next capacity of a full vector, and the allocator of its memory.
#[cold]
#[inline(never)]
fn larger<T>(full: &FrameVec<T>) -> (usize, FrameMemory) {
    ((2 * full.len()).max(4), full.allocator().clone())
}
