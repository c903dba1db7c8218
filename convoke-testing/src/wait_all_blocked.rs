//! `wait_all_blocked()`: returns when there is nothing to do for anybody else.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::raw::{Frame, StopWatch};

use super::stage::{Stage, here};
use convoke_core::raw::wake_if_any;

/// Waits until every other task of the test waits and nothing is queued, before time jumps: what the others could do without
/// time passing they have done. Of several who wait for this, one at a time goes on, in their order.
///
/// - *Completes with* nothing in particular, or stopped: also if there is nothing to wait for, when a stop was asked for.
/// - *If dropped*, it does not wait any more.
/// - *Runs on* the task.
/// - *Panics* outside of tasks that run on a [`Stage`].
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Semaphore;
/// use convoke::testing::{self, wait_all_blocked};
/// use std::sync::Arc;
///
/// testing::run(async {
///     scope(async |s| {
///         let permits = Arc::new(Semaphore::new(1));
///         let held = permits.acquire().await;
///         let waits = permits.clone();
///         s.spawn(async move { drop(waits.acquire().await) });
///         wait_all_blocked().await;
///         assert!(permits.try_acquire().is_none(), "the child waits in front");
///         drop(held);
///     })
///     .await;
/// });
/// ```
#[track_caller]
pub fn wait_all_blocked() -> WaitAllBlocked {
    let stage = here("`wait_all_blocked`");
    WaitAllBlocked { stage, waiting: None, place: Location::caller(), watch: StopWatch::new() }
}

/// See [`wait_all_blocked()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct WaitAllBlocked {
    stage: Stage,
    waiting: Option<Arc<Waiting>>,
    place: &'static Location<'static>,
    watch: StopWatch,
}

/// Those who wait for it, on one stage.
pub(super) struct Blocked(Mutex<VecDeque<Arc<Waiting>>>);

/// `None` once it may go on.
struct Waiting(Mutex<Option<Waker>>);

impl Blocked {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Lets the first go on. False if nobody waits.
    pub(super) fn release_one(&self) -> bool {
        let Some(first) = self.lock().pop_front() else { return false };
        let waker = first.lock().take();
        wake_if_any(waker);
        true
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitAllBlocked {
    fn leave(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.stage.blocked().lock().retain(|other| !Arc::ptr_eq(other, &waiting));
        }
    }
}

impl Future for WaitAllBlocked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        Frame::current(|frame| {
            if frame.is_some_and(Frame::honour_stop) {
                this.leave();
                return Poll::Pending;
            }
            match &this.waiting {
                None => {
                    let waiting = Arc::new(Waiting(Mutex::new(Some(cx.waker().clone()))));
                    this.stage.blocked().lock().push_back(waiting.clone());
                    this.waiting = Some(waiting);
                }
                Some(waiting) => {
                    // Cloned, and dropped, without the lock: it may be anybody's.
                    let clone = cx.waker().clone();
                    let mut waker = waiting.lock();
                    if waker.is_none() {
                        return Poll::Ready(());
                    }
                    let before = waker.replace(clone);
                    drop(waker);
                    drop(before);
                }
            }
            if let Some(frame) = frame {
                frame.waits_at(this.place);
                this.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl Drop for WaitAllBlocked {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for WaitAllBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitAllBlocked").field("at", &self.place).finish_non_exhaustive()
    }
}
