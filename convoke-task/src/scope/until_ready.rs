//! `s.spawn_until_ready(async |ready| …)`: a child that says when it is ready, and with what.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::PoisonError;

use convoke_core::raw::sync::{Arc, Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, outside_a_task};

use super::output::ChildOutput;
use super::spawn::Scope;
use convoke_core::raw::wake_if_any;

impl<O> Scope<O> {
    /// Starts a child, and waits until it says that it is ready: a server that has its port, for example. The child is
    /// given a [`Ready`] to say so, once, with a value.
    ///
    /// - *Completes with* the value; or [`EndedEarly`], if the child has ended, or dropped its `Ready`, without one. Stopped, if
    ///   a stop is asked for: also because the child has failed, and its error has stopped the scope.
    /// - *If dropped*, the child goes on. It is started at once, whether this is awaited or not.
    /// - *Panics* if the scope has ended, or there is no memory; and outside a task.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let port = s.spawn_until_ready(async |ready| {
    ///             ready.report(8080);
    ///             // … and serves.
    ///         });
    ///         port.await
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome.unwrap().unwrap(), 8080);
    /// ```
    #[track_caller]
    pub fn spawn_until_ready<T, B, F>(&self, child: B) -> Started<T>
    where
        B: FnOnce(Ready<T>) -> F,
        F: Future<Output: ChildOutput<O> + Send> + Send + 'static,
        O: Send + 'static,
    {
        let (ready, started) = handshake(Location::caller());
        self.spawn_at(child(ready), Location::caller());
        started
    }
}

/// Both ends.
fn handshake<T>(place: &'static Location<'static>) -> (Ready<T>, Started<T>) {
    let meeting = Arc::new(Mutex::new(State { value: None, is_over: false, waker: None }));
    let ready = Ready { meeting: meeting.clone() };
    (ready, Started { meeting, place, watch: StopWatch::new() })
}

struct State<T> {
    value: Option<T>,
    /// The value was given, or there will be none.
    is_over: bool,
    waker: Option<Waker>,
}

fn lock<T>(meeting: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    meeting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// With which a child says that it is ready: see [`Scope::spawn_until_ready`].
#[must_use = "whoever has started the child waits for it to be ready"]
pub struct Ready<T> {
    meeting: Arc<Mutex<State<T>>>,
}

impl<T> Ready<T> {
    /// The child is ready, with this value. It is dropped if nobody waits for it any more.
    pub fn report(self, value: T) {
        lock(&self.meeting).value = Some(value);
    }
}

impl<T> Drop for Ready<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.meeting);
        state.is_over = true;
        let waker = state.waker.take();
        drop(state);
        wake_if_any(waker);
    }
}

/// Waits for a child to be ready: see [`Scope::spawn_until_ready`].
#[must_use = "the child has started; this waits until it is ready"]
pub struct Started<T> {
    meeting: Arc<Mutex<State<T>>>,
    place: &'static Location<'static>,
    watch: StopWatch,
}

impl<T> Future for Started<T> {
    type Output = Result<T, EndedEarly>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("a child that is being started") };
            // Cloned without the lock: it may be anybody's.
            let waker = cx.waker().clone();
            let mut state = lock(&self.meeting);
            if state.is_over {
                let value = state.value.take();
                drop(state);
                return Poll::Ready(value.ok_or(EndedEarly { started_at: self.place }));
            }
            let before = state.waker.replace(waker);
            drop(state);
            drop(before);
            if !frame.honour_stop() {
                frame.waits_at(self.place);
                self.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl<T> Unpin for Started<T> {}

/// A child has ended, or given up saying so, before it was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedEarly {
    started_at: &'static Location<'static>,
}

impl fmt::Display for EndedEarly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the child started at {} has ended before it was ready", self.started_at)
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
        f.debug_struct("Started").field("at", &self.place).finish_non_exhaustive()
    }
}
