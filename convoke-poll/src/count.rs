//! `Count`: the number of waiters of a driver, in one word, without locks and system calls. A context without
//! other work asks for it, and sleeps if there are waiters, until an event arrives. Another thread may remove
//! the last waiter without any event, so a request is noted, and the context is woken then.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

/// Flag: the context was told that there are waiters, and is to be woken when there are none.
const ASKED: usize = 1;
/// The unit of the count, which fills the other bits.
const ONE: usize = 2;

/// A count of waiters that remembers if its value was requested.
#[derive(Debug)]
pub struct Count {
    word: AtomicUsize,
}

impl Count {
    /// Creates a count of zero without a request.
    pub fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.word.fetch_add(ONE, Ordering::Relaxed);
    }

    /// Subtracts `by`. Returns true if the count is zero now and was requested: the caller wakes the context.
    #[inline]
    #[must_use = "the context must be woken if this is true"]
    pub fn subtract(&self, by: usize) -> bool {
        let last = by * ONE + ASKED;
        // If there are waiters again by now, the context is woken for those.
        self.word.fetch_sub(by * ONE, Ordering::AcqRel) == last
            && self.word.compare_exchange(ASKED, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns the count. If it is not zero, the request is noted: the context is woken when it reaches zero.
    pub fn request(&self) -> usize {
        let mut word = self.word.load(Ordering::Acquire);
        if word >= ONE && word & ASKED == 0 {
            word = self.word.fetch_or(ASKED, Ordering::AcqRel);
        }
        word / ONE
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::new()
    }
}
