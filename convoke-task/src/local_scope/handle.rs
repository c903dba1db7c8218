//! The handle of a child that returns a value, and the child, which stores its outcome for the handle.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, budget, outside_a_task};
use convoke_core::{BodyOutput, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::child::Label;
use crate::region::Region;
use crate::stop_handle::{LocalStop, StopHandle};
use crate::together::ended::ended;
use convoke_core::raw::{FrameArc, discard, wake_if_any};

/// Handle of a child of a local scope that returns a value: awaits that value.
///
/// - *Completes with* the value of the child. Stopped, if the child was stopped, or if the awaiting task is
///   asked to stop.
/// - *If dropped*, the child is asked to stop. The scope still waits for it.
/// - *Runs on*: the child, in the task that opened the scope. Awaiting the handle runs nothing.
/// - *Panics* with the panic of the child, and its name; and outside a task.
#[must_use = "dropping the handle stops the child, and so does `let _ =`; await it, or start the child with `spawn`"]
pub struct LocalHandle<T> {
    shared: FrameArc<SharedOutcome<T>>,
    started_at: &'static Location<'static>,
    watch: StopWatch,
    taken: bool,
    /// The child was stopped for this reason, and the awaiting task with it.
    stopped: Option<Option<StopReason>>,
}

impl<T> Unpin for LocalHandle<T> {}

/// State that child and handle share.
struct SharedOutcome<T> {
    state: Mutex<HandleState<T>>,
    /// Shared with stop handles, too.
    stop: FrameArc<LocalStop>,
}

struct HandleState<T> {
    outcome: Option<Outcome<T>>,
    /// The reason for which the child was stopped.
    stopped_for: Option<StopReason>,
    /// The waker of the task that awaits the handle.
    waiter: Option<Waker>,
    handle_gone: bool,
}

impl<T> SharedOutcome<T> {
    fn lock(&self) -> MutexGuard<'_, HandleState<T>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the outcome. If there is none yet, stores the waker.
    fn take_or_wait(&self, waker: &Waker) -> Option<Outcome<T>> {
        let mut clone = None;
        loop {
            let mut state = self.lock();
            if let Some(outcome) = state.outcome.take() {
                return Some(outcome);
            }
            if let Some(waker) = clone.take() {
                let before = state.waiter.replace(waker);
                drop(state);
                drop(before);
                return None;
            }
            // Cloned without the lock: a clone may run foreign code.
            drop(state);
            clone = Some(waker.clone());
        }
    }
}

impl<T> LocalHandle<T> {
    /// Asks the child to stop, for this reason. The handle can still be awaited.
    ///
    /// The first reason stays. A child whose handle is dropped sees [`StopReason::Abandoned`].
    #[doc(alias = "abort")]
    pub fn request_stop(&self, reason: StopReason) {
        self.shared.stop.request(reason);
    }

    /// Returns a handle that only asks the child to stop: it can be cloned, and go to any thread.
    #[doc(alias = "abort_handle")]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of_local_child(self.shared.stop.clone())
    }

    /// Returns true if the child has ended. Awaiting the handle then does not wait.
    pub fn is_finished(&self) -> bool {
        self.shared.stop.has_ended()
    }

    /// Awaits the child and returns its outcome, with a stop or a panic of the child as a value.
    ///
    /// - *Completes with* the outcome of the child. Stopped, if the awaiting task is asked to stop before the
    ///   child has ended.
    /// - *If dropped*, the child is asked to stop. The scope still waits for it.
    /// - *Runs on*: the child, in the task that opened the scope. Awaiting runs nothing.
    /// - *Panics* outside a task.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let outcome = block_on(async {
    ///     local_scope(async |s| {
    ///         let child = s.spawn_future(async { panic!("no such page") });
    ///         let outcome: Outcome<()> = child.outcome().await;
    ///         matches!(outcome, Outcome::Panicked(panic) if panic.message().contains("page"))
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(true));
    /// ```
    pub fn outcome(self) -> LocalOutcome<T> {
        LocalOutcome { handle: self }
    }

    /// Polls for the outcome of the child. Returns `Pending` also if the awaiting task ends as stopped.
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if let Some(reason) = self.stopped {
                // Polled again after the stop, by a combinator that still has to finish another branch.
                frame.stop_with(reason);
                return Poll::Pending;
            }
            assert!(!self.taken, "`LocalHandle` polled after it returned its value");
            if !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            let Some(outcome) = self.shared.take_or_wait(cx.waker()) else {
                if !frame.honour_stop() {
                    frame.waits_at(self.started_at);
                    self.watch.watch(frame, cx);
                }
                return Poll::Pending;
            };
            self.taken = true;
            budget::spend();
            Poll::Ready(outcome)
        })
    }
}

impl<T> Future for LocalHandle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Poll::Ready(outcome) = self.poll_outcome(cx) else { return Poll::Pending };
        match outcome {
            Outcome::Value(value) => Poll::Ready(value),
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
            Outcome::Stopped => {
                let reason = self.shared.lock().stopped_for;
                self.stopped = Some(reason);
                Frame::current(|frame| match frame {
                    Some(frame) => frame.stop_with(reason),
                    None => outside_a_task("the handle of a child"),
                });
                Poll::Pending
            }
        }
    }
}

/// Future of [`LocalHandle::outcome`].
#[must_use = "dropping it stops the child; await it"]
pub struct LocalOutcome<T> {
    handle: LocalHandle<T>,
}

impl<T> Unpin for LocalOutcome<T> {}

impl<T> BodyOutput for LocalOutcome<T> {}

impl<T> Future for LocalOutcome<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        self.handle.poll_outcome(cx)
    }
}

impl<T> fmt::Debug for LocalOutcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalOutcome").field(&self.handle).finish()
    }
}

impl<T> Drop for LocalHandle<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.handle_gone = true;
        let outcome = state.outcome.take();
        drop(state);
        drop(outcome);
        if !self.taken {
            self.request_stop(StopReason::Abandoned);
        }
    }
}

pin_project! {
    /// A child with a handle. It does not fail the scope, except with a panic whose handle is gone.
    pub(super) struct FutureChild<F: Future, O> {
        #[pin]
        body: Option<F>,
        region: Region,
        promise: Promise<F::Output>,
        label: Label,
        _output: PhantomData<fn() -> O>,
    }
}

/// The shared state as the child has it. If it is dropped without an outcome, the child was stopped.
struct Promise<T>(FrameArc<SharedOutcome<T>>);

impl<T> Promise<T> {
    /// Stores the outcome for the handle, and the reason of the request if the child was asked to stop. Returns
    /// a panic if the handle is gone.
    fn store(&self, outcome: Outcome<T>, reason: Option<StopReason>) -> Result<(), Panic> {
        let child = self.0.stop.end();
        let mut state = self.0.lock();
        state.stopped_for = reason;
        let late = if state.handle_gone {
            Some(outcome)
        } else {
            state.outcome = Some(outcome);
            None
        };
        let waker = state.waiter.take();
        drop(state);
        wake_if_any(waker);
        child.into_iter().for_each(discard);
        match late {
            Some(Outcome::Panicked(panic)) => Err(panic),
            // Dropped here: the handle is gone. A panic of the destructor counts as a panic of the child.
            late => Panic::catch(|| drop(late)),
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        // The only reference: the handle is gone, and the outcome does not matter.
        if !self.0.is_unique() {
            self.0.stop.end().into_iter().for_each(discard);
            let mut state = self.0.lock();
            let waker = state.waiter.take();
            if state.outcome.is_none() {
                state.outcome = Some(Outcome::Stopped);
            }
            drop(state);
            wake_if_any(waker);
        }
    }
}

/// Creates a child and its handle.
pub(super) fn with_handle<F: Future, O>(
    future: F,
    label: Label,
) -> (FutureChild<F, O>, LocalHandle<F::Output>) {
    let started_at = label.location;
    let state = HandleState { outcome: None, stopped_for: None, waiter: None, handle_gone: false };
    let stop = FrameArc::in_task(LocalStop::default());
    let shared = FrameArc::in_task(SharedOutcome { state: Mutex::new(state), stop });
    let child = FutureChild {
        body: Some(future),
        region: Region::new(),
        promise: Promise(shared.clone()),
        label,
        _output: PhantomData,
    };
    (child, LocalHandle { shared, started_at, watch: StopWatch::new(), taken: false, stopped: None })
}

impl<F: Future, O> Future for FutureChild<F, O> {
    type Output = Option<O>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<O>> {
        let mut this = self.project();
        if let Some(reason) = this.promise.0.stop.reason_or_wait(cx.waker()) {
            // The panic hook has reported a panic of a stop callback. The body still runs to its end.
            let _ = Panic::catch(|| this.region.request_stop(reason));
        }
        let Some(body) = this.body.as_mut().as_pin_mut() else { panic!("polled after completion") };
        let polled = Panic::catch(|| this.region.poll(body, cx));
        let Some(outcome) = ended(polled, this.region.plain(), || this.body.set(None)) else {
            return Poll::Pending;
        };
        let outcome = match outcome {
            Outcome::Panicked(panic) => Outcome::Panicked(this.label.of_panic(panic)),
            other => other,
        };
        match this.promise.store(outcome, this.region.stop_reason()) {
            Ok(()) => Poll::Ready(None),
            // Goes to the scope. The label was added above.
            Err(panic) => panic.resume(),
        }
    }
}

impl<T> BodyOutput for LocalHandle<T> {}

impl<T> fmt::Debug for LocalHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalHandle").field("started at", &self.started_at).finish_non_exhaustive()
    }
}
