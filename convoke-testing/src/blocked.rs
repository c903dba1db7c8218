//! The tasks of a stage that wait until no other task can run.

use core::task::Waker;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::raw::wake_if_any;

/// The waiters of one stage.
pub(super) struct Blocked(Mutex<VecDeque<Arc<Waiting>>>);

/// A waiter. `None` once it may continue.
pub(super) struct Waiting(Mutex<Option<Waker>>);

impl Blocked {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Releases the first waiter. Returns false if there is none.
    pub(super) fn release_one(&self) -> bool {
        let Some(first) = self.lock().pop_front() else { return false };
        let waker = first.lock().take();
        wake_if_any(waker);
        true
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    pub(super) fn new(waker: Waker) -> Self {
        Self(Mutex::new(Some(waker)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
