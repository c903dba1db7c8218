//! The handle of a child that returns something.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::sync::thread;
use convoke_core::raw::{Frame, ReasonCode, Runnable, StopWatch, budget, outside_a_task};
use convoke_core::{BodyOutput, Outcome, StopReason};

use super::blocking::thread_waker;
use crate::stop_handle::StopHandle;
use crate::task::{Anywhere, End, HandleKind, Join};

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
/// A task that asks a child to stop and then awaits it is stopped with it. To go on instead, catch the stop, or
/// await the [`outcome`](Handle::outcome):
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let child = s.spawn_future(async { forever().await });
///         child.request_stop(StopReason::Named("not needed any more"));
///         let caught: Result<(), Stopped> = catch_stopped(child).await;
///         caught.unwrap_err().reason()
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Some(StopReason::Named("not needed any more"))));
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
    /// The reason for which it was stopped. A number: handles are moved, and each byte counts.
    reason: Option<ReasonCode>,
}

impl<T, K: HandleKind> Unpin for Handle<T, K> {}

impl<T, K: HandleKind> Handle<T, K> {
    #[inline]
    pub(super) fn new(child: Join<T, K>) -> Self {
        Self { child: Some(child), watch: StopWatch::new(), stopped: false, reason: None }
    }

    /// Asks the child to stop, for this reason. The handle can still be awaited.
    ///
    /// The first reason stays. A child whose handle is dropped sees [`StopReason::Abandoned`].
    #[doc(alias = "abort")]
    pub fn request_stop(&self, reason: StopReason) {
        if let Some(child) = &self.child {
            child.ask_stop(reason);
        }
    }

    /// Returns a handle that only asks the child to stop: it can be cloned, and go to any thread.
    ///
    /// # Panics
    /// If the handle was polled to its end.
    #[doc(alias = "abort_handle")]
    pub fn stop_handle(&self) -> StopHandle {
        match &self.child {
            Some(child) => StopHandle::of_child(child.asker()),
            None => panic!("a stop handle was asked for after the handle returned its value"),
        }
    }

    /// Returns true if the child has ended. Awaiting the handle then does not wait.
    pub fn is_finished(&self) -> bool {
        self.child.as_ref().is_none_or(Join::is_done)
    }

    /// Awaits the child and returns its outcome, with a stop or a panic of the child as a value.
    ///
    /// - *Completes with* the outcome of the child. Stopped, if the awaiting task is asked to stop before the
    ///   child has ended.
    /// - *If dropped*, the child is asked to stop. The scope still waits for it.
    /// - *Runs on*: the child, on the executor that it was started on. Awaiting runs nothing.
    /// - *Panics* outside a task, unless the child has already ended.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let child = s.spawn_future(async { "seven".parse::<u32>().unwrap() });
    ///         match child.outcome().await {
    ///             Outcome::Panicked(panic) => panic.message().contains("InvalidDigit"),
    ///             other => panic!("the child did not panic: {other:?}"),
    ///         }
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(true));
    /// ```
    pub fn outcome(self) -> HandleOutcome<T, K> {
        HandleOutcome { handle: self }
    }

    /// Polls for the end of the child. Returns `Pending` also if the awaiting task ends as stopped.
    #[inline]
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End<T>> {
        Join::take_if_done(&mut self.child).map_or_else(|| self.poll_slow(cx), Poll::Ready)
    }

    /// Polls for the end of the child: the path of all polls except for one that finds the outcome on the owner
    /// thread. Returns `Pending` also if the awaiting task ends as stopped.
    #[inline]
    fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<End<T>> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again after the stop, by a combinator that still has to finish another branch.
                frame.stop_with(self.reason.map(ReasonCode::reason));
                return Poll::Pending;
            }
            assert!(self.child.is_some(), "`Handle` polled after it returned its value");
            match Join::take_or_wait(&mut self.child, cx.waker()) {
                Ok(end) => Poll::Ready(end),
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

    /// Polls for the value, after `take_value_if_done` has found none.
    #[inline(never)]
    fn poll_value_slow(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        match self.poll_end(cx) {
            Poll::Ready(End::Value(value)) => {
                budget::spend();
                Poll::Ready(value)
            }
            Poll::Ready(other) => self.end_otherwise(other),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ends the poll for an outcome that is not a value.
    #[cold]
    #[inline(never)]
    fn end_otherwise(&mut self, end: End<T>) -> Poll<T> {
        match end {
            End::Value(value) => return Poll::Ready(value),
            End::Panicked(panic) => panic.resume(),
            End::Stopped(reason) => {
                (self.stopped, self.reason) = (true, reason);
                Frame::current(|frame| match frame {
                    Some(frame) => frame.stop_with(reason.map(ReasonCode::reason)),
                    None => outside_a_task("the handle of a child"),
                });
            }
        }
        Poll::Pending
    }
}

impl<T> Handle<T, Anywhere> {
    /// Blocks this thread until the child has ended, and returns its outcome.
    pub(super) fn wait(mut self) -> Outcome<T> {
        let waker = thread_waker();
        loop {
            match Join::take_or_wait(&mut self.child, &waker) {
                Ok(end) => return end.into_outcome(),
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
        match Join::take_value_if_done(&mut self.child) {
            Some(value) => {
                budget::spend();
                Poll::Ready(value)
            }
            None => self.poll_value_slow(cx),
        }
    }
}

/// Future of [`Handle::outcome`].
#[must_use = "dropping it stops the child; await it"]
pub struct HandleOutcome<T, K: HandleKind = Anywhere> {
    handle: Handle<T, K>,
}

impl<T, K: HandleKind> Unpin for HandleOutcome<T, K> {}

impl<T, K: HandleKind> BodyOutput for HandleOutcome<T, K> {}

impl<T, K: HandleKind> Future for HandleOutcome<T, K> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        match self.handle.poll_end(cx) {
            Poll::Ready(end) => {
                budget::spend();
                Poll::Ready(end.into_outcome())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T, K: HandleKind> fmt::Debug for HandleOutcome<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandleOutcome").field(&self.handle).finish()
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
