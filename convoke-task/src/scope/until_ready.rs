//! `s.child().spawn_until_ready(async |ready| …)`: a child that reports when it is ready, with a value.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::PoisonError;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, FrameArc, StopWatch, budget, outside_a_task};

use convoke_core::raw::wake_if_any;

/// Creates both ends of a report.
pub(super) fn ready_pair<T>(started_at: &'static Location<'static>) -> (Ready<T>, Started<T>) {
    let state = FrameArc::in_task(Mutex::new(ReadyState { value: None, is_over: false, waker: None }));
    let ready = Ready { state: state.clone() };
    (ready, Started { state, started_at, watch: StopWatch::new() })
}

struct ReadyState<T> {
    value: Option<T>,
    /// The `Ready` is gone: the value is there, or there will be none.
    is_over: bool,
    waker: Option<Waker>,
}

fn lock<T>(state: &Mutex<ReadyState<T>>) -> MutexGuard<'_, ReadyState<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Right of a child to report once that it is ready. [`Child::spawn_until_ready`](super::Child::spawn_until_ready) passes it to the child.
#[must_use = "the task that started the child waits for `report`"]
pub struct Ready<T> {
    state: FrameArc<Mutex<ReadyState<T>>>,
}

impl<T> Ready<T> {
    /// Reports that the child is ready, with this value. The value is dropped if the [`Started`] is.
    pub fn report(self, value: T) {
        lock(&self.state).value = Some(value);
    }
}

impl<T> Drop for Ready<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let waker = state.waker.take();
        drop(state);
        wake_if_any(waker);
    }
}

/// Future of [`Child::spawn_until_ready`](super::Child::spawn_until_ready): waits until a child is ready.
#[must_use = "the child has started; this waits until it is ready"]
pub struct Started<T> {
    state: FrameArc<Mutex<ReadyState<T>>>,
    started_at: &'static Location<'static>,
    watch: StopWatch,
}

impl<T> Future for Started<T> {
    type Output = Result<T, EndedEarly>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("a child that is being started") };
            if !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            // Cloned without the lock: a clone may run foreign code.
            let waker = cx.waker().clone();
            let mut state = lock(&self.state);
            if state.is_over {
                let value = state.value.take();
                drop(state);
                budget::spend();
                return Poll::Ready(value.ok_or(EndedEarly { started_at: self.started_at }));
            }
            let before = state.waker.replace(waker);
            drop(state);
            drop(before);
            if !frame.honour_stop() {
                frame.waits_at(self.started_at);
                self.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl<T> Unpin for Started<T> {}

/// Error of a child that ended, or dropped its [`Ready`], before it was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedEarly {
    started_at: &'static Location<'static>,
}

impl fmt::Display for EndedEarly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the child started at {} ended before it was ready", self.started_at)
    }
}

impl core::error::Error for EndedEarly {}

impl<T> fmt::Debug for Ready<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Started<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("at", &self.started_at).finish_non_exhaustive()
    }
}
