//! Awaiting a sender in an `async fn`.
//!
//! The first poll starts the sender, on the thread of the task. There are three ways, from the cheapest: a
//! sender whose type says `Inline` runs on the stack of that poll (`inline`); one that only yields re-queues
//! the task itself; any other becomes an operation that the task adopts (`Adopted`), which wakes the task
//! when it completes. `into_future` implements `IntoFuture` for the senders of this crate, and
//! `awaitable_sender` is the bound for all of them.

#![allow(unsafe_code)]

mod awaitable_sender;
mod inline;
mod into_future;

pub use awaitable_sender::AwaitableSender;
pub use convoke_core::AwaitError;

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::{OutcomeOf, Sender};
use convoke_core::Outcome;
use convoke_core::raw::{
    Adopted, AdoptedReceiver, Frame, StopWatch, budget, outside_a_task, polled_again, stop_frame,
};

type OperationOf<S> = <S as Sender>::Operation<AdoptedReceiver<<S as Sender>::Value, <S as Sender>::Error>>;

type Running<S> = Adopted<<S as Sender>::Value, <S as Sender>::Error, OperationOf<S>>;

/// The future of the sender `S`: see [`AwaitedFuture`].
pub type Awaited<S> = AwaitedFuture<S, OutcomeOf<S>, Running<S>>;

/// The future of a sender: `sender.await` makes it. Generic code makes it with [`Sender::into_awaited`].
///
/// - *Completes with* the value, or with a `Result` if the sender can fail. If the work was stopped, the
///   function that awaits is not resumed: it unwinds to `catch_stopped`, or to the task above it. If the work
///   panicked, the panic continues here.
/// - *If dropped* while the work runs, the work is asked to stop, and the task does not end before the work
///   has.
/// - *Runs on* the executor of the awaiting task, wherever the work completes. Work that completes at once,
///   or on that executor, costs no hop; work whose type says that it completes inline needs no memory.
/// - *Panics* if it is polled outside a task, unless the work completes inline; and if it is polled again
///   after it has returned its result.
///
/// Its parameters are the sender, its outcome and its operation: [`Awaited`] fills in the last two.
/// They have no bounds, because the compiler would have to prove these for every lifetime that an `async` block
/// erases, and it rejects senders that carry a `&'static str` as "not general enough".
#[must_use = "futures do nothing until they are awaited"]
pub struct AwaitedFuture<S, T, O> {
    stage: Stage<S, T, O>,
    location: &'static Location<'static>,
    watch: StopWatch,
}

enum Stage<S, T, O> {
    New(S),
    /// The task went to the back of its queue; this is the outcome after that.
    Yielded(T),
    Running(O),
    /// It has returned its result, or panicked, and must not be polled again.
    Finished,
    /// It was stopped.
    Stopped,
}

// SAFETY: `new`, the only constructor, takes a sender, which is `Send`. An outcome and an operation are in here
// only after `start`, which requires that value and error are `Send`; an operation is. `StopWatch` is `Send`.
unsafe impl<S, T, O> Send for AwaitedFuture<S, T, O> {}

// Nothing in here is pinned: the sender is moved out before it is connected, and the operation is allocated
// separately.
impl<S, T, O> Unpin for AwaitedFuture<S, T, O> {}

impl<S: Sender> Awaited<S> {
    /// Creates the future of `sender`.
    #[inline]
    #[track_caller]
    pub fn new(sender: S) -> Self {
        Self { stage: Stage::New(sender), location: Location::caller(), watch: StopWatch::new() }
    }
}

impl<S: Sender<Value: Send, Error: Send> + 'static> Awaited<S> {
    #[inline]
    fn start(&mut self, sender: S, cx: &Context<'_>) -> Option<OutcomeOf<S>> {
        if S::COMPLETES.is_inline() {
            return Some(inline::run(sender));
        }
        let yields = Frame::current(|frame| {
            let frame = frame?;
            let outcome = sender.as_yield(frame.operation_owner().env())?;
            frame.is_own_waker(cx.waker()).then(|| {
                frame.waits_at(self.location);
                outcome
            })
        });
        if let Some(outcome) = yields {
            self.stage = Stage::Yielded(outcome);
            cx.waker().wake_by_ref();
            return None;
        }
        // SAFETY: rules 1 and 2 of `Sender`: the receiver is completed once, and nothing uses the operation
        // afterwards.
        self.step_operation(cx, |frame| unsafe {
            Running::<S>::start(|receiver| sender.connect(receiver), frame, cx)
        })
    }

    /// Returns the outcome after the task was at the back of its queue: stopped if a stop was requested
    /// meanwhile.
    fn after_yield(outcome: OutcomeOf<S>) -> OutcomeOf<S> {
        let asked = Frame::current(|frame| frame.is_some_and(Frame::is_asked_to_stop));
        if asked { Outcome::Stopped } else { outcome }
    }

    /// Takes one step of the adopted operation: returns the outcome, or sets the stage in which it is
    /// awaited.
    fn step_operation(
        &mut self,
        cx: &Context<'_>,
        step: impl FnOnce(&Frame<'_>) -> Result<OutcomeOf<S>, Running<S>>,
    ) -> Option<OutcomeOf<S>> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task(core::any::type_name::<S>()) };
            match step(frame) {
                Ok(outcome) => Some(outcome),
                Err(running) => {
                    self.stage = Stage::Running(running);
                    frame.waits_at(self.location);
                    self.watch.watch(frame, cx);
                    None
                }
            }
        })
    }
}

impl<S: Sender<Value: Send, Error: AwaitError + Send> + 'static> Future for Awaited<S> {
    type Output = <S::Error as AwaitError>::Output<S::Value>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.stage, Stage::New(_)) && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let outcome = match core::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::New(sender) => self.start(sender, cx),
            Stage::Yielded(outcome) => Some(Self::after_yield(outcome)),
            Stage::Running(running) => self.step_operation(cx, |frame| running.poll(frame, cx)),
            Stage::Finished => polled_again("the sender", self.location),
            Stage::Stopped => Some(Outcome::Stopped),
        };
        if outcome.is_some() {
            budget::spend();
        }
        match outcome {
            Some(Outcome::Value(value)) => Poll::Ready(S::Error::value(value)),
            Some(Outcome::Error(error)) => Poll::Ready(error.error()),
            Some(Outcome::Panicked(panic)) => panic.resume(),
            Some(Outcome::Stopped) => {
                self.stage = Stage::Stopped;
                stop_frame("a sender that was stopped");
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

impl<S, T, O> fmt::Debug for AwaitedFuture<S, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::New(_) => "new",
            Stage::Yielded(_) | Stage::Running(_) => "running",
            Stage::Finished => "finished",
            Stage::Stopped => "stopped",
        };
        f.debug_struct("Awaited").field("stage", &stage).field("at", &self.location).finish()
    }
}
