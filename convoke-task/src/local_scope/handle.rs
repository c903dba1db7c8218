//! The handle of a child that returns something; and the child, which leaves its outcome there.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{Frame, StopWatch, outside_a_task};
use convoke_core::{BodyOutput, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::child::Label;
use crate::region::Region;
use crate::together::ended::ended;
use convoke_core::raw::{discard, wake_if_any};

/// Awaits what a child of a local scope returns.
///
/// - *Completes with* what the child returned. Stopped, if the child was, or if the one who waits is. If the child
///   panicked, the panic goes on here, with the child's name.
/// - *If dropped*, the child is asked to stop; the scope waits for it as for all others.
/// - *Panics* outside a task.
#[must_use = "dropping the handle asks the child to stop; await it, or start the child with `spawn`"]
pub struct LocalHandle<T> {
    meeting: Arc<Meeting<T>>,
    place: &'static Location<'static>,
    watch: StopWatch,
    taken: bool,
    /// The child was, and so is whoever awaits it.
    stopped: bool,
}

impl<T> Unpin for LocalHandle<T> {}

/// Where child and handle meet.
struct Meeting<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    outcome: Option<Outcome<T>>,
    /// Of whoever awaits the handle.
    awaits: Option<Waker>,
    /// Of the child.
    child: Option<Waker>,
    asked: bool,
    handle_gone: bool,
}

impl<T> Meeting<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the outcome. If there is none yet, `waker` is called when there is.
    fn take_or_wait(&self, waker: &Waker) -> Option<Outcome<T>> {
        let mut clone = None;
        loop {
            let mut state = self.lock();
            if let Some(outcome) = state.outcome.take() {
                return Some(outcome);
            }
            if let Some(waker) = clone.take() {
                let before = state.awaits.replace(waker);
                drop(state);
                drop(before);
                return None;
            }
            // Without the lock: a waker may be anybody's.
            drop(state);
            clone = Some(waker.clone());
        }
    }

    /// Returns true if the child was asked to stop. If not, `waker` is called when it is.
    fn is_asked_or_will_tell(&self, waker: &Waker) -> bool {
        let mut clone = None;
        loop {
            let mut state = self.lock();
            if state.asked || state.child.as_ref().is_some_and(|child| child.will_wake(waker)) {
                return state.asked;
            }
            if let Some(waker) = clone.take() {
                let before = state.child.replace(waker);
                drop(state);
                drop(before);
                return false;
            }
            // Without the lock: a waker may be anybody's.
            drop(state);
            clone = Some(waker.clone());
        }
    }
}

impl<T> LocalHandle<T> {
    /// Asks the child to stop. It is awaited as before.
    pub fn request_stop(&self) {
        let mut state = self.meeting.lock();
        state.asked = true;
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
                // Polled again, beside something that must not be dropped yet.
                frame.set_stopped();
                return Poll::Pending;
            }
            assert!(!self.taken, "polled after it has ended");
            let Some(outcome) = self.meeting.take_or_wait(cx.waker()) else {
                if !frame.honour_stop() {
                    frame.waits_at(self.place);
                    self.watch.watch(frame, cx);
                }
                return Poll::Pending;
            };
            self.taken = true;
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
        let mut state = self.meeting.lock();
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
    /// A child with a handle. Nothing of it is the scope's, but a panic that nobody waits for.
    pub(super) struct FutureChild<F: Future, O> {
        #[pin]
        body: Option<F>,
        region: Region,
        promise: Promise<F::Output>,
        label: Label,
        _output: PhantomData<fn() -> O>,
    }
}

/// The child's side: if it goes without an outcome, it was stopped.
struct Promise<T>(Arc<Meeting<T>>);

impl<T> Promise<T> {
    /// Leaves the outcome. A panic comes back if nobody is there any more.
    fn leave(&self, outcome: Outcome<T>) -> Result<(), Panic> {
        let mut state = self.0.lock();
        let late = if state.handle_gone {
            Some(outcome)
        } else {
            state.outcome = Some(outcome);
            None
        };
        let waker = state.awaits.take();
        let child = state.child.take();
        drop(state);
        wake_if_any(waker);
        child.into_iter().for_each(discard);
        match late {
            Some(Outcome::Panicked(panic)) => Err(panic),
            // Nobody wants it. A panic of its destructor is the child's.
            late => Panic::catch(|| drop(late)),
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        // Once it has left an outcome nobody awaits it any more, and there is nothing to be said.
        if Arc::strong_count(&self.0) > 1 {
            let mut state = self.0.lock();
            let waker = state.awaits.take();
            if state.outcome.is_none() {
                state.outcome = Some(Outcome::Stopped);
            }
            drop(state);
            wake_if_any(waker);
        }
    }
}

/// A child, and its handle.
pub(super) fn with_handle<F: Future, O>(
    future: F,
    label: Label,
) -> (FutureChild<F, O>, LocalHandle<F::Output>) {
    let place = label.location;
    let state = State { outcome: None, awaits: None, child: None, asked: false, handle_gone: false };
    let meeting = Arc::new(Meeting { state: Mutex::new(state) });
    let child = FutureChild {
        body: Some(future),
        region: Region::new(),
        promise: Promise(meeting.clone()),
        label,
        _output: PhantomData,
    };
    (child, LocalHandle { meeting, place, watch: StopWatch::new(), taken: false, stopped: false })
}

impl<F: Future, O> Future for FutureChild<F, O> {
    type Output = Option<O>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<O>> {
        let mut this = self.project();
        if this.promise.0.is_asked_or_will_tell(cx.waker()) {
            // What a callback throws has been reported by the panic hook; the body comes to its end nevertheless.
            let _ = Panic::catch(|| this.region.request_stop(StopReason::Abandoned));
        }
        let Some(body) = this.body.as_mut().as_pin_mut() else { panic!("polled after it has ended") };
        let polled = Panic::catch(|| this.region.poll(body, cx));
        let Some(outcome) = ended(polled, this.region, || this.body.set(None)) else { return Poll::Pending };
        let outcome = match outcome {
            Outcome::Panicked(panic) => Outcome::Panicked(this.label.of_panic(panic)),
            other => other,
        };
        match this.promise.leave(outcome) {
            Ok(()) => Poll::Ready(None),
            // The scope's, then. It says whose it was already.
            Err(panic) => panic.resume(),
        }
    }
}

impl<T> BodyOutput for LocalHandle<T> {}

impl<T> fmt::Debug for LocalHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalHandle").field("started at", &self.place).finish_non_exhaustive()
    }
}
