//! The handle of a child that returns a value, and the child, which stores its outcome for the handle.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, budget, outside_a_task};
use convoke_core::{BodyOutput, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::child::Label;
use crate::region::Region;
use crate::together::ended::ended;
use convoke_core::raw::{discard, wake_if_any};

/// Handle of a child of a local scope that returns a value: awaits that value.
///
/// - *Completes with* the value of the child. Stopped, if the child was stopped, or if the awaiting task is
///   asked to stop.
/// - *If dropped*, the child is asked to stop. The scope still waits for it.
/// - *Runs on*: the child, in the task that opened the scope. Awaiting the handle runs nothing.
/// - *Panics* with the panic of the child, and its name; and outside a task.
#[must_use = "dropping the handle stops the child, and so does `let _ =`; await it, or start the child with `spawn`"]
pub struct LocalHandle<T> {
    shared: Arc<Shared<T>>,
    started_at: &'static Location<'static>,
    watch: StopWatch,
    taken: bool,
    /// The child was stopped, and the awaiting task with it.
    stopped: bool,
}

impl<T> Unpin for LocalHandle<T> {}

/// State that child and handle share.
struct Shared<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    outcome: Option<Outcome<T>>,
    /// The waker of the task that awaits the handle.
    waiter: Option<Waker>,
    /// The waker of the child, to tell it of a stop request.
    child: Option<Waker>,
    stop_requested: bool,
    handle_gone: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
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

    /// Returns true if the child was asked to stop. If not, stores its waker.
    fn stop_requested_or_wait(&self, waker: &Waker) -> bool {
        let mut clone = None;
        loop {
            let mut state = self.lock();
            if state.stop_requested || state.child.as_ref().is_some_and(|child| child.will_wake(waker)) {
                return state.stop_requested;
            }
            if let Some(waker) = clone.take() {
                let before = state.child.replace(waker);
                drop(state);
                drop(before);
                return false;
            }
            // Cloned without the lock: a clone may run foreign code.
            drop(state);
            clone = Some(waker.clone());
        }
    }
}

impl<T> LocalHandle<T> {
    /// Asks the child to stop. The handle can still be awaited.
    pub fn request_stop(&self) {
        let mut state = self.shared.lock();
        state.stop_requested = true;
        let child = state.child.take();
        drop(state);
        wake_if_any(child);
    }
}

impl<T> Future for LocalHandle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again after the stop, by a combinator that still has to finish another branch.
                frame.set_stopped();
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
            match outcome {
                Outcome::Value(value) => Poll::Ready(value),
                Outcome::Error(never) => never.absurd(),
                Outcome::Panicked(panic) => panic.resume(),
                Outcome::Stopped => {
                    self.stopped = true;
                    frame.set_stopped();
                    Poll::Pending
                }
            }
        })
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
            self.request_stop();
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
struct Promise<T>(Arc<Shared<T>>);

impl<T> Promise<T> {
    /// Stores the outcome for the handle. Returns a panic if the handle is gone.
    fn store(&self, outcome: Outcome<T>) -> Result<(), Panic> {
        let mut state = self.0.lock();
        let late = if state.handle_gone {
            Some(outcome)
        } else {
            state.outcome = Some(outcome);
            None
        };
        let waker = state.waiter.take();
        let child = state.child.take();
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
        if Arc::strong_count(&self.0) > 1 {
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
    let state = State { outcome: None, waiter: None, child: None, stop_requested: false, handle_gone: false };
    let shared = Arc::new(Shared { state: Mutex::new(state) });
    let child = FutureChild {
        body: Some(future),
        region: Region::new(),
        promise: Promise(shared.clone()),
        label,
        _output: PhantomData,
    };
    (child, LocalHandle { shared, started_at, watch: StopWatch::new(), taken: false, stopped: false })
}

impl<F: Future, O> Future for FutureChild<F, O> {
    type Output = Option<O>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<O>> {
        let mut this = self.project();
        if this.promise.0.stop_requested_or_wait(cx.waker()) {
            // The panic hook has reported a panic of a stop callback. The body still runs to its end.
            let _ = Panic::catch(|| this.region.request_stop(StopReason::Abandoned));
        }
        let Some(body) = this.body.as_mut().as_pin_mut() else { panic!("polled after completion") };
        let polled = Panic::catch(|| this.region.poll(body, cx));
        let Some(outcome) = ended(polled, this.region, || this.body.set(None)) else { return Poll::Pending };
        let outcome = match outcome {
            Outcome::Panicked(panic) => Outcome::Panicked(this.label.of_panic(panic)),
            other => other,
        };
        match this.promise.store(outcome) {
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
