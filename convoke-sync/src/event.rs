//! `Event`: it has happened, or it has not yet.

use core::fmt;
use core::future::Future;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::sync::const_outside_models;

use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// Something that happens, for any number who wait for it. It stays set until it is reset.
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
#[doc(alias = "Notify")]
pub struct Event {
    /// Written under the lock.
    set: AtomicBool,
    /// How often it was set.
    queue: WaitQueue<u64, (), 2>,
}

impl Event {
    const_outside_models! {
        /// It has not happened.
        pub fn new() -> Self {
            Self { set: AtomicBool::new(false), queue: WaitQueue::new(0) }
        }
    }

    /// It has happened. All who wait go on, also if it is reset at once.
    pub fn set(&self) {
        let mut locked = self.queue.lock();
        *locked.state() += 1;
        self.set.store(true, Ordering::Release);
        drop(locked);
        self.queue.grant_all(0);
    }

    /// It has not happened, for those who ask from now on.
    pub fn reset(&self) {
        let _locked = self.queue.lock();
        self.set.store(false, Ordering::Release);
    }

    /// Whether it has happened.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until it has happened.
    ///
    /// - *Completes with* nothing in particular, or stopped: also if it has happened, when a stop was asked for.
    /// - *If dropped*, it does not wait any more.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
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
