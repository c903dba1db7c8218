//! `Event`: a flag that tasks can wait for.

use core::fmt;
use core::future::Future;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::const_outside_models;

use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// A flag that any number of tasks can wait for. It stays set until it is reset. Use
/// [`Notify`](super::Notify) for a notification that one waiter takes.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Event;
/// use std::sync::Arc;
///
/// let ready = Arc::new(Event::new());
/// let outcome = block_on(async move {
///     scope(async |s| {
///         let waits = ready.clone();
///         let waited = s.spawn_future(async move {
///             waits.wait().await;
///             "ready"
///         });
///         ready.set();
///         waited.await
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value("ready"));
/// ```
pub struct Event {
    /// Written under the lock of `queue`.
    set: AtomicBool,
    /// The state counts the calls of `set`, so that a waiter notices a `set` that was reset at once.
    queue: WaitQueue<u64, (), 2>,
}

impl Event {
    const_outside_models! {
        /// Creates an event that is not set.
        pub fn new() -> Self {
            Self { set: AtomicBool::new(false), queue: WaitQueue::new(0) }
        }
    }

    /// Sets the event and wakes all waiters. They complete even if the event is reset at once.
    pub fn set(&self) {
        let mut locked = self.queue.lock();
        *locked.state() += 1;
        self.set.store(true, Ordering::Release);
        drop(locked);
        self.queue.grant_all(0);
    }

    /// Resets the event: later calls of `wait` wait until it is set again.
    pub fn reset(&self) {
        let _locked = self.queue.lock();
        self.set.store(false, Ordering::Release);
    }

    /// Returns true if the event is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the event is set.
    ///
    /// - *Completes with* `()`, or as stopped if a stop was requested, even if the event is set.
    /// - *If dropped*, it stops waiting.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        let mut begun = None;
        until(&self.queue, 0, Pause::here(), move |locked| {
            let times = *locked.state();
            (self.is_set() || *begun.get_or_insert(times) != times).then_some(())
        })
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("set", &self.is_set()).finish()
    }
}
