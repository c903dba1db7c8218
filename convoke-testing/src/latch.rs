//! Waiting in tests, without a sleep.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time after which a wait counts as a hang. No test that passes takes as long.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// A counter that opens at zero. Clones share the latch.
#[derive(Clone, Debug)]
pub struct Latch(Arc<(Mutex<usize>, Condvar)>);

impl Latch {
    /// Creates a latch that opens after `count` counts.
    pub fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    /// Counts down by one.
    #[track_caller]
    pub fn count_down(&self) {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(*count > 0, "a latch was counted down below zero");
        *count -= 1;
        if *count == 0 {
            self.0.1.notify_all();
        }
    }

    /// Blocks the thread until it is open.
    ///
    /// # Panics
    /// If that takes longer than two minutes: something hangs.
    #[track_caller]
    pub fn wait(&self) {
        let end = Instant::now() + HANGS_AFTER;
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "a latch did not open within two minutes: {} counts are missing",
                *count
            );
            count = self.0.1.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true if it is open.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) == 0
    }
}
