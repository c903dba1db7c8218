//! The distribution of the calls of a `bulk`: its runners claim chunks from a counter until none is left.

use core::ops::Range;

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use convoke_core::stop::StopRef;
use convoke_core::{Outcome, Panic};

/// Chunks per runner: enough to even out runners of different speed, few enough that the claims cost nothing.
const CHUNKS_PER_RUNNER: usize = 8;

/// The calls that are left, and the result so far.
#[derive(Debug)]
pub(super) struct Share {
    /// The next unclaimed chunk. It counts chunks and not indices, so that it cannot overflow.
    next: AtomicUsize,
    chunks: usize,
    chunk: usize,
    count: usize,
    alone: bool,
    /// True if a chunk was claimed and not run, because of a stop request.
    stopped: AtomicBool,
    panic: Mutex<Option<Panic>>,
}

impl Share {
    /// Distributes `count` calls among `runners` runners.
    pub(super) fn new(count: usize, runners: usize) -> Self {
        let chunk = (count / runners.saturating_mul(CHUNKS_PER_RUNNER)).max(1);
        Self {
            next: AtomicUsize::new(0),
            chunks: count.div_ceil(chunk),
            chunk,
            count,
            alone: runners == 1,
            stopped: AtomicBool::new(false),
            panic: Mutex::new(None),
        }
    }

    /// Claims chunks and makes their calls until none is left, a call panics or a stop is requested.
    #[inline]
    pub(super) fn work(&self, stop: StopRef<'_>, calls: impl Fn(Range<usize>)) {
        while let Some(chunk) = self.claim() {
            if stop.stop_requested() {
                // Relaxed, here and below: the reader runs after all runners have left.
                self.stopped.store(true, Ordering::Relaxed);
                return self.claim_all();
            }
            if let Err(panic) = Panic::catch(|| calls(chunk)) {
                return self.end_with(panic);
            }
        }
    }

    #[inline]
    fn claim(&self) -> Option<Range<usize>> {
        let chunk = if self.alone {
            let chunk = self.next.load(Ordering::Relaxed);
            self.next.store(chunk + 1, Ordering::Relaxed);
            chunk
        } else {
            self.next.fetch_add(1, Ordering::Relaxed)
        };
        if chunk >= self.chunks {
            return None;
        }
        let start = chunk * self.chunk;
        Some(start..self.count.min(start.saturating_add(self.chunk)))
    }

    /// Ends the calls early, with a panic.
    #[cold]
    pub(super) fn end_with(&self, panic: Panic) {
        self.claim_all();
        self.store_first(panic);
    }

    /// Claims all chunks that are left, so that no runner makes further calls.
    #[cold]
    fn claim_all(&self) {
        self.next.store(self.chunks, Ordering::Relaxed);
    }

    /// Stores the panic, unless there is an earlier one.
    #[cold]
    fn store_first(&self, panic: Panic) {
        let mut first = self.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.is_none() {
            *first = Some(panic);
        } else {
            drop(first);
            drop(panic);
        }
    }

    /// Returns the outcome. Called when all runners have left.
    pub(super) fn end<V, E>(&mut self, value: V) -> Outcome<V, E> {
        if let Some(panic) = self.panic.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
            return Outcome::Panicked(panic);
        }
        if self.stopped.load(Ordering::Relaxed) { Outcome::Stopped } else { Outcome::Value(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_index_once() {
        for runners in 1..5 {
            for count in [0, 1, 7, 8, 9, 63, 64, 65, 1000] {
                let share = Share::new(count, runners);
                let claimed: Vec<_> = core::iter::from_fn(|| share.claim()).flatten().collect();
                assert_eq!(claimed, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_largest_count_does_not_overflow() {
        let share = Share::new(usize::MAX, 3);
        let mut last = 0;
        while let Some(chunk) = share.claim() {
            assert_eq!(chunk.start, last);
            last = chunk.end;
        }
        assert_eq!(last, usize::MAX);
    }
}
