//! The future of work that the awaiting task owns.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::operation::Operation;
use super::{Adopted, AdoptedReceiver};
use crate::frame::{Frame, StopWatch, budget, outside_a_task};
use crate::{AwaitError, Outcome};

/// Work that a task can adopt: the future that awaits it may be dropped, and the task then waits for the
/// work.
///
/// # Safety
/// The operation completes the receiver exactly once, and nothing uses the operation afterwards.
pub unsafe trait Adoptable: Sized {
    /// The value it completes with.
    type Value: Send;
    /// The error it fails with; `Never` if it cannot fail.
    type Error: AwaitError + Send;
    /// The connected work.
    type Operation: Operation;
    /// The name of the work in the message of a panic outside a task: "a transfer".
    const NAME: &'static str;

    /// Connects the work to the receiver.
    fn connect(self, receiver: AdoptedReceiver<Self::Value, Self::Error>) -> Self::Operation;
}

/// The future of [`Adoptable`] work.
///
/// - *Completes with* the value, or with a `Result` if the work can fail. If the work was stopped, the
///   function that awaits is not resumed: it is dropped, up to the next `catch_stopped` or to the task. If
///   the work panicked, the panic is resumed here.
/// - *If dropped* while the work runs, a stop of the work is requested, and the task does not end before the
///   work has.
/// - *Runs on* the executor of the task that awaits, wherever the work completes.
/// - *Panics* if it is polled outside a task, or again after it has returned its result.
#[must_use = "futures do nothing until they are awaited"]
pub struct AdoptedFuture<A: Adoptable> {
    stage: Stage<A>,
    location: &'static Location<'static>,
    watch: StopWatch,
}

enum Stage<A: Adoptable> {
    New(A),
    Running(Adopted<A::Value, A::Error, A::Operation>),
    /// The future has returned its result, or panicked.
    Finished,
    /// The future has set the *stopped* flag of its frame.
    Stopped,
}

// Nothing in here is pinned: the work is moved out before it is connected, and the operation lies in memory
// of the task.
impl<A: Adoptable> Unpin for AdoptedFuture<A> {}

impl<A: Adoptable> AdoptedFuture<A> {
    /// Creates the future. The location of the caller becomes the wait location of the task.
    #[inline]
    #[track_caller]
    pub fn new(work: A) -> Self {
        Self { stage: Stage::New(work), location: Location::caller(), watch: StopWatch::new() }
    }
}

impl<A: Adoptable<Operation: 'static>> Future for AdoptedFuture<A> {
    type Output = <A::Error as AwaitError>::Output<A::Value>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if matches!(this.stage, Stage::New(_)) && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let stage = core::mem::replace(&mut this.stage, Stage::Finished);
        let outcome = Frame::current(|frame| {
            let frame = frame.unwrap_or_else(|| outside_a_task(A::NAME));
            let polled = match stage {
                // SAFETY: `Adoptable` requires of `A` that its operation completes the receiver once, and is not
                // used afterwards.
                Stage::New(work) => unsafe { Adopted::start(|receiver| work.connect(receiver), frame, cx) },
                Stage::Running(running) => running.poll(frame, cx),
                Stage::Finished => polled_again(A::NAME, this.location),
                Stage::Stopped => Ok(Outcome::Stopped),
            };
            match polled {
                Ok(outcome) => Some(outcome),
                Err(running) => {
                    this.stage = Stage::Running(running);
                    frame.waits_at(this.location);
                    this.watch.watch(frame, cx);
                    None
                }
            }
        });
        if outcome.is_some() {
            budget::spend();
        }
        match outcome {
            Some(Outcome::Value(value)) => Poll::Ready(A::Error::value(value)),
            Some(Outcome::Error(error)) => Poll::Ready(error.error()),
            Some(Outcome::Panicked(panic)) => panic.resume(),
            Some(Outcome::Stopped) => {
                this.stage = Stage::Stopped;
                stop_frame(A::NAME);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

/// Panics: the future was polled after it had returned its result. Leaves the frame alone, which is not
/// involved.
#[cold]
pub fn polled_again(what: &str, location: &Location<'_>) -> ! {
    panic!(
        "{what} awaited at {location} was polled again after it had finished; a future returns its result once"
    )
}

/// Ends the current frame as stopped. The caller, a future, returns `Pending` now.
#[cold]
pub fn stop_frame(what: &str) {
    Frame::current(|frame| match frame {
        Some(frame) => frame.set_stopped(),
        None => outside_a_task(what),
    });
}

impl<A: Adoptable> fmt::Debug for AdoptedFuture<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::New(_) => "new",
            Stage::Running(_) => "running",
            Stage::Finished => "finished",
            Stage::Stopped => "stopped",
        };
        f.debug_struct("AdoptedFuture").field("stage", &stage).field("at", &self.location).finish()
    }
}
