//! `Bound`: a limit on how much runs at a time, by count or by weight. `s.spawn_within(&bound, weight, || …)`
//! waits for capacity before it creates the child. It is a semaphore that knows its size.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use super::output::ChildOutput;
use super::spawn::Scope;
use convoke_sync::{OwnedPermit, Semaphore};

/// Limit on how much runs at a time, by count or by weight. Clones share the same capacity, also between
/// scopes.
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

impl<O> Scope<O> {
    /// Starts a child when the bound has capacity for it. Only then is `make` called, and memory allocated.
    /// The capacity is returned when the child has ended.
    ///
    /// - *Completes with* `()`, when the child has been started. Stopped, if the task is asked to stop before.
    /// - *If dropped*, nothing is started.
    /// - *Runs on*: the child, on the scope's executor.
    /// - *Panics* if the weight is larger than the whole bound; if the scope has ended, or there is no memory.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::scope::Bound;
    ///
    /// let outcome = block_on(async {
    ///     let bound = Bound::new(2);
    ///     scope(async |s| {
    ///         for n in 0..10 {
    ///             let make = || async move { println!("{n}, of two at a time") };
    ///             s.spawn_within(&bound, 1, make).await;
    ///         }
    ///     })
    ///     .await;
    ///     bound.free()
    /// });
    /// assert_eq!(outcome, Outcome::Value(2));
    /// ```
    #[track_caller]
    pub fn spawn_within<'a, M, F>(
        &'a self,
        bound: &Bound,
        weight: usize,
        make: M,
    ) -> impl Future<Output = ()> + use<'a, O, M, F>
    where
        M: FnOnce() -> F,
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        let location = Location::caller();
        let take = bound.take(weight);
        async move {
            let permit = take.await;
            let child = make();
            let child = async move {
                let _permit = permit;
                child.await
            };
            self.spawn_at(child, location);
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("size", &self.size).field("free", &self.free()).finish()
    }
}
