//! `Bound`: how much may run at a time, by count or by weight. `s.spawn_within(&bound, weight, || …)` waits for room before
//! anything is made. It is a semaphore that knows how large it is.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use super::output::ChildOutput;
use super::spawn::Scope;
use convoke_sync::{OwnedPermit, Semaphore};

/// How much may run at a time. Clones are the same bound; several scopes may share one.
#[derive(Clone)]
pub struct Bound {
    size: usize,
    room: Arc<Semaphore>,
}

impl Bound {
    /// Room for this much.
    pub fn new(size: usize) -> Self {
        Self { size, room: Arc::new(Semaphore::new(size)) }
    }

    /// How much room there is now.
    pub fn free(&self) -> usize {
        self.room.available()
    }

    /// Takes room for this much, when it is there and everybody before has been served.
    ///
    /// - *Completes with* a permit, which gives the room back when it is dropped. Stopped, if a stop is asked for.
    /// - *If dropped*, the place in the queue is given up.
    /// - *Panics* if the whole bound is smaller than that.
    #[track_caller]
    pub fn take(&self, weight: usize) -> impl Future<Output = OwnedPermit> + Send + use<> {
        let size = self.size;
        assert!(weight <= size, "{weight} do not fit into a bound of {size}, however long one waits");
        self.room.acquire_many_owned(weight)
    }
}

impl<O> Scope<O> {
    /// Starts a child when there is room for it: `make` is called, and memory taken, only then. The room is given back when the
    /// child has ended.
    ///
    /// - *Completes with* nothing in particular, when the child has been started. Stopped, if a stop is asked for before.
    /// - *If dropped*, nothing is started.
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
    ///             s.spawn_within(&bound, 1, || async move { println!("{n}, of two at a time") }).await;
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
        let place = Location::caller();
        let take = bound.take(weight);
        async move {
            let permit = take.await;
            let child = make();
            let child = async move {
                let _permit = permit;
                child.await
            };
            self.spawn_at(child, place);
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("size", &self.size).field("free", &self.free()).finish()
    }
}
