//! Waiting in tests, without a sleep.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a test waits before it says that something hangs. No test that passes comes near it.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Opens when it was counted down to zero. Clones are the same latch.
#[derive(Clone, Debug)]
pub struct Latch(Arc<(Mutex<usize>, Condvar)>);

impl Latch {
    /// A latch that opens after so many counts.
    pub fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    /// Counts one down.
    #[track_caller]
    pub fn count_down(&self) {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(*count > 0, "a latch was counted down too often");
        *count -= 1;
        if *count == 0 {
            self.0.1.notify_all();
        }
    }

    /// Waits until it is open.
    ///
    /// # Panics
    /// If that takes so long that something must be wrong.
    #[track_caller]
    pub fn wait(&self) {
        let end = Instant::now() + HANGS_AFTER;
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of the awaited have not come: something hangs", *count);
            count = self.0.1.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) == 0
    }
}
