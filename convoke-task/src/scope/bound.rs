//! `Bound`: a limit on how much runs at a time, by count or by weight. A child that is started with a permit
//! holds it until it has ended. It is a semaphore that knows its size.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_sync::{OwnedPermit, Semaphore};

/// Limit on how much runs at a time, by count or by weight. Clones share the same capacity, also between
/// scopes. [`Child::permit`](super::Child::permit) gives a permit to a child.
#[derive(Clone)]
pub struct Bound {
    size: usize,
    capacity: Arc<Semaphore>,
}

impl Bound {
    /// Creates a bound with this capacity.
    pub fn new(size: usize) -> Self {
        Self { size, capacity: Arc::new(Semaphore::new(size)) }
    }

    /// Returns the capacity that is free now.
    pub fn free(&self) -> usize {
        self.capacity.available()
    }

    /// Waits for capacity, first come, first served, and takes it.
    ///
    /// - *Completes with* a permit, which returns the capacity when it is dropped. Stopped, if the task is
    ///   asked to stop.
    /// - *If dropped*, the place in the queue is given up.
    /// - *Runs on* the task that awaits it.
    /// - *Panics* if `weight` is larger than the whole bound.
    #[track_caller]
    pub fn take(&self, weight: usize) -> impl Future<Output = OwnedPermit> + Send + use<> {
        let size = self.size;
        assert!(
            weight <= size,
            "a weight of {weight} never fits into a bound of {size}; use a larger bound, or a smaller weight"
        );
        self.capacity.acquire_many_owned(weight)
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("size", &self.size).field("free", &self.free()).finish()
    }
}
