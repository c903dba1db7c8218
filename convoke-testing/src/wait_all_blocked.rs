//! `wait_all_blocked()`: waits until no other task of the test can run.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::{Frame, StopWatch};

use super::blocked::Waiting;
use super::stage::{Stage, current_stage};

/// Waits until every other task of the test waits and nothing is queued. Time does not pass meanwhile: the
/// other tasks have done all that they can do now. If several tasks wait for this, one at a time continues,
/// in order.
///
/// - *Completes with* `()`, or stopped: if a stop was requested, also if there is nothing to wait for.
/// - *If dropped*, it does not wait any more.
/// - *Runs on* the calling task.
/// - *Panics* outside tasks that run on a [`Stage`].
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
    let stage = current_stage("`wait_all_blocked`");
    WaitAllBlocked { stage, waiting: None, location: Location::caller(), watch: StopWatch::new() }
}

/// A future that completes when no other task can run: see [`wait_all_blocked()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct WaitAllBlocked {
    stage: Stage,
    waiting: Option<Arc<Waiting>>,
    location: &'static Location<'static>,
    watch: StopWatch,
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
                    let waiting = Arc::new(Waiting::new(cx.waker().clone()));
                    this.stage.blocked().lock().push_back(waiting.clone());
                    this.waiting = Some(waiting);
                }
                Some(waiting) => {
                    // Cloned and dropped without the lock: a waker may run any code.
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
                frame.waits_at(this.location);
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
        f.debug_struct("WaitAllBlocked").field("at", &self.location).finish_non_exhaustive()
    }
}
