//! The count of the operations that a task waits for. The thread inside the task adopts them; each is freed
//! from inside, or counted as released on any thread.

use core::cell::Cell;

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};

/// Counts operations in flight. Both numbers wrap: they differ by the operations in flight, of which memory
/// holds fewer than 2³².
pub(super) struct InFlight {
    /// The number of operations adopted, less those that were freed from inside. Used from inside only.
    adopted: Cell<u32>,
    /// The number of operations that were released on another thread.
    gone: AtomicU32,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self { adopted: Cell::new(0), gone: AtomicU32::new(0) }
    }

    /// Counts an operation as adopted. Called from inside.
    #[inline]
    pub(super) fn adopted(&self) {
        self.adopted.set(self.adopted.get().wrapping_add(1));
    }

    /// Counts an operation as freed. Called from inside.
    #[inline]
    pub(super) fn freed(&self) {
        self.adopted.set(self.adopted.get().wrapping_sub(1));
    }

    /// Counts an operation as released, on any thread. The task may end as soon as this is counted.
    #[inline]
    pub(super) fn released(&self) {
        self.gone.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of operations in flight. Called from inside.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.adopted.get().wrapping_sub(self.gone.load(Ordering::Acquire))
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn the_counts_wrap_together() {
        let in_flight = InFlight { adopted: Cell::new(u32::MAX - 1), gone: AtomicU32::new(u32::MAX - 1) };
        for _ in 0..3 {
            in_flight.adopted();
        }
        assert_eq!(in_flight.count(), 3);
        in_flight.released();
        in_flight.freed();
        assert_eq!(in_flight.count(), 1, "one was freed inside, one was released elsewhere");
        in_flight.released();
        assert_eq!(in_flight.count(), 0);
        in_flight.adopted();
        in_flight.freed();
        assert_eq!(in_flight.count(), 0);
    }
}
