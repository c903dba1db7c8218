//! The sleeper of a loop that a tokio task runs: the clock is tokio's, and to wake the loop is to wake the task.

use core::task::Waker;
use std::sync::PoisonError;
use std::time::Instant;

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::{discard, wake_if_any};
use convoke_exec::raw::Sleeper;

/// The waker of the tokio task that runs a loop, and tokio's clock, which a test may have paused.
#[derive(Default)]
pub(crate) struct TaskWaker(Mutex<Option<Waker>>);

impl TaskWaker {
    /// Stores the waker of the task that polls now.
    pub(crate) fn set(&self, waker: &Waker) {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.as_ref().is_some_and(|stored| stored.will_wake(waker)) {
            return;
        }
        drop(stored);
        // Cloned and dropped without the lock: both may run foreign code.
        let clone = waker.clone();
        stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = stored.replace(clone);
        drop(stored);
        if let Some(before) = before {
            discard(before);
        }
    }

    /// Drops the waker.
    pub(crate) fn clear(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(discard);
    }
}

impl Sleeper for TaskWaker {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    /// Returns at once. Only loops that nothing embeds sleep.
    fn sleep(&self, _: Option<Instant>) {}

    fn check(&self) {}

    fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        wake_if_any(waker);
    }
}
