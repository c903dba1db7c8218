//! The handle of a child that returns something.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Outcome;
use convoke_core::raw::sync::thread;
use convoke_core::raw::{Frame, Runnable, StopWatch, budget, outside_a_task};

use super::blocking::thread_waker;
use crate::task::{Anywhere, HandleKind, Join, heard};

/// Handle of a child that returns a value: awaits that value. Returned by
/// [`Scope::spawn_future`](super::Scope::spawn_future).
///
/// - *Completes with* the value of the child. Stopped, if the child was stopped, or if the awaiting task is
///   asked to stop.
/// - *If dropped*, the child is asked to stop. The scope still waits for it. If the child has panicked or still
///   does, the scope fails with that panic.
/// - *Runs on*: the child, on the executor that it was started on. Awaiting the handle runs nothing.
/// - *Panics* with the panic of the child, and its name; and outside a task, unless the child has already
///   ended.
///
/// A task that asks a child to stop and then awaits it is stopped with it. To go on instead, catch the stop:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let child = s.spawn_future(async { forever().await });
///         child.request_stop();
///         catch_stopped(child).await.is_err()
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[doc(alias = "JoinHandle")]
#[must_use = "dropping the handle stops the child, and so does `let _ =`; await it, or start the child with `spawn`"]
pub struct Handle<T, K: HandleKind = Anywhere> {
    /// The child, until the outcome was taken and the reference released. If it is dropped, the child is asked
    /// to stop.
    child: Option<Join<T, K>>,
    watch: StopWatch,
    /// The child was stopped, and the awaiting task with it.
    stopped: bool,
}

impl<T, K: HandleKind> Unpin for Handle<T, K> {}

impl<T, K: HandleKind> Handle<T, K> {
    #[inline]
    pub(super) fn new(child: Join<T, K>) -> Self {
        Self { child: Some(child), watch: StopWatch::new(), stopped: false }
    }

    /// Asks the child to stop. The handle can still be awaited. The child sees the same reason as if the
    /// handle were dropped: [`StopReason::Abandoned`](convoke_core::StopReason::Abandoned).
    #[doc(alias = "abort")]
    pub fn request_stop(&self) {
        if let Some(child) = &self.child {
            child.ask_stop(convoke_core::StopReason::Abandoned);
        }
    }

    /// Polls the handle: the path of all polls except for one that finds the outcome on the owner thread.
    #[inline(never)]
    fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again after the stop, by a combinator that still has to finish another branch.
                frame.set_stopped();
                return Poll::Pending;
            }
            assert!(self.child.is_some(), "`Handle` polled after it returned its value");
            match Join::take_or_wait(&mut self.child, cx.waker()) {
                Ok(Outcome::Value(value)) => {
                    budget::spend();
                    Poll::Ready(value)
                }
                Ok(other) => self.end_otherwise(other),
                Err(location) => {
                    if !frame.honour_stop() {
                        if let Some(location) = location {
                            frame.waits_at(location);
                        }
                        self.watch.watch(frame, cx);
                    }
                    Poll::Pending
                }
            }
        })
    }

    /// Ends the poll for an outcome that is not a value.
    #[cold]
    #[inline(never)]
    fn end_otherwise(&mut self, outcome: Outcome<T>) -> Poll<T> {
        match outcome {
            Outcome::Value(value) => return Poll::Ready(value),
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => heard(panic).resume(),
            Outcome::Stopped => {}
        }
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            self.stopped = true;
            frame.set_stopped();
        });
        Poll::Pending
    }
}

impl<T> Handle<T, Anywhere> {
    /// Blocks this thread until the child has ended, and returns its outcome.
    pub(super) fn wait(mut self) -> Outcome<T> {
        let waker = thread_waker();
        loop {
            match Join::take_or_wait(&mut self.child, &waker) {
                Ok(Outcome::Panicked(panic)) => return Outcome::Panicked(heard(panic)),
                Ok(outcome) => return outcome,
                // An executor below us on this stack may have refused the child; then this thread must end it.
                Err(_) if Runnable::stop_deferred() => {}
                Err(_) => thread::park(),
            }
        }
    }
}

impl<T, K: HandleKind> Future for Handle<T, K> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // The outcome stays with the child.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        match Join::take_if_done(&mut self.child) {
            Some(Outcome::Value(value)) => {
                budget::spend();
                Poll::Ready(value)
            }
            Some(other) => self.end_otherwise(other),
            None => self.poll_slow(cx),
        }
    }
}

impl<T, K: HandleKind> fmt::Debug for Handle<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("taken", &self.child.is_none())
            .field("started at", &self.child.as_ref().and_then(Join::location))
            .finish_non_exhaustive()
    }
}
