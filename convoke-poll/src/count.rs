//! How many wait for this driver, in one word; no lock, no system call. A context that has nothing else to run asks for it and sleeps
//! if there are some, until an event comes for one of them. The last may leave by another thread's doing, without any event: so whoever
//! asks is noted, and woken then.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

/// Somebody was told that there are some, and wants to hear when there are none.
const ASKED: usize = 1;
/// The rest counts.
const ONE: usize = 2;

/// See the head of this file.
#[derive(Debug)]
pub struct Count {
    word: AtomicUsize,
}

impl Count {
    /// Nobody waits, and nobody has asked.
    pub fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// One more.
    #[inline]
    pub fn more(&self) {
        self.word.fetch_add(ONE, Ordering::Relaxed);
    }

    /// So many less. True if those were the last, and somebody has asked: he is to be woken.
    #[inline]
    #[must_use = "whoever has asked is woken"]
    pub fn less(&self, by: usize) -> bool {
        let last = by * ONE + ASKED;
        // If there are some again by now, he hears of those.
        self.word.fetch_sub(by * ONE, Ordering::AcqRel) == last
            && self.word.compare_exchange(ASKED, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// How many. If there are some, whoever asks is to be woken when there are none.
    pub fn ask(&self) -> usize {
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
