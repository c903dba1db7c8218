//! The sender behind `continues_on`, `on` and `affine_on`: work whose outcome is moved to an executor. An
//! adaptor implements [`Destination`]; this file does the rest.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::operation::{Absent, Posted, Posts, Serial, SerialTurn, Steps};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::raw::{Call, dispatch_contained, post_contained};
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Outcome, Panic};

/// The choice of the executor that an outcome is moved to.
pub trait Destination: Send {
    /// The type of that executor.
    type Executor: Executor;
    /// True if it is always the executor of the environment. The outcome is then dispatched there, whatever
    /// the functions below return.
    const BACK: bool = false;

    /// Returns how the outcome gets to the executor, for work that has completed in this environment. `completes` is what
    /// is known about where.
    fn target(self, env: &Env, completes: Completes) -> HopTarget<Self::Executor>;

    /// Returns the executor that a value will be completed on if the work starts in `env`.
    fn executor(&self, env: &Env) -> ExecutorRef;
}

/// Where an outcome goes: to an executor, and how, or nowhere else.
pub enum HopTarget<X> {
    /// Complete on the current thread: it is on the executor already.
    Stay,
    /// Through the queue, unless the executor says that the thread is on it already.
    Dispatch(X),
    /// Through the queue, always.
    Post(X),
}

/// A sender that runs work and then hops to an executor with the outcome.
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Hopped<S, D> {
    sender: S,
    destination: D,
}

impl<S, D> Hopped<S, D> {
    /// Creates a sender that moves the outcome of `sender` to `destination`.
    #[inline]
    pub fn new(sender: S, destination: D) -> Self {
        Self { sender, destination }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Serial` completes the receiver last, after the hop. Rule 3: with
// `BACK`, the hop goes to the executor of the environment; `Anywhere` claims nothing.
#[diagnostic::do_not_recommend]
unsafe impl<S, D> Sender for Hopped<S, D>
where
    S: Sender<Value: Send, Error: Send>,
    D: Destination,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = if D::BACK { Completes::Here } else { Completes::Anywhere };
    type Operation<R: Receiver<S::Value, S::Error>> = Serial<HopSteps<S, D, R>>;

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        let (sender, destination) = (Some(self.sender), Some(self.destination));
        let steps = HopSteps { sender, destination, outcome: None, _receiver: PhantomData };
        Serial::new(steps, Posted::new(), receiver)
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        Some(self.destination.executor(env))
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.sender.allocator()
    }
}

/// The steps of [`Hopped`]: the outcome is stored while the operation is queued; the operation of the work is
/// destroyed before that.
pub struct HopSteps<S: Sender, D, R> {
    sender: Option<S>,
    destination: Option<D>,
    outcome: Option<OutcomeOf<S>>,
    _receiver: PhantomData<R>,
}

impl<S, D, R> Steps for HopSteps<S, D, R>
where
    S: Sender<Value: Send, Error: Send>,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    type Work = S;
    type Value = S::Value;
    type Error = S::Error;
    type Receiver = R;
    type Next = Absent<S::Value, S::Error>;
    type Shared = Posted<SerialTurn<Self>>;

    #[inline]
    fn start(mut turn: SerialTurn<Self>) {
        if let Some(sender) = turn.parts().sender.take() {
            turn.run(sender);
        }
    }

    #[inline]
    fn ended(mut turn: SerialTurn<Self>, outcome: OutcomeOf<S>) {
        let Some(destination) = turn.parts().destination.take() else { return };
        if D::BACK {
            let env = turn.receiver().env();
            let target = Panic::catch(|| HopTarget::Dispatch(env.executor().clone()));
            return hop(turn, target, outcome);
        }
        let target = Panic::catch(|| destination.target(turn.receiver().env(), S::COMPLETES));
        hop(turn, target, outcome);
    }
}

/// Stores the outcome and hops, or completes here with the panic of code that the program
/// implements: comparing and cloning executors.
#[inline]
fn hop<S, D, R, X>(
    mut turn: SerialTurn<HopSteps<S, D, R>>,
    target: Result<HopTarget<X>, Panic>,
    outcome: OutcomeOf<S>,
) where
    S: Sender<Value: Send, Error: Send>,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
    X: Executor,
{
    let target = match target {
        Ok(target) => target,
        Err(panic) => return turn.complete(outcome.or_panic(panic)),
    };
    match target {
        HopTarget::Stay => turn.complete(outcome),
        HopTarget::Post(executor) => {
            turn.parts().outcome = Some(outcome);
            post_contained(executor, turn.into_runnable());
        }
        HopTarget::Dispatch(executor) => {
            turn.parts().outcome = Some(outcome);
            if let Some(runnable) = dispatch_contained(executor, turn.into_runnable()) {
                runnable.run();
            }
        }
    }
}

impl<S, D, R> Posts for HopSteps<S, D, R>
where
    S: Sender<Value: Send, Error: Send>,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    fn resumed(mut turn: SerialTurn<Self>, call: Call) {
        let Some(outcome) = turn.parts().outcome.take() else { return };
        // A value that cannot get to its executor is dropped; an error or a panic is passed on. The drop
        // comes before the completion, because what the value borrows may be gone right after that.
        let outcome = match outcome {
            Outcome::Value(value) if call == Call::Stop => {
                Panic::catch(|| drop(value)).map_or_else(Outcome::Panicked, |()| Outcome::Stopped)
            }
            outcome => outcome,
        };
        turn.complete(outcome);
    }
}

impl<X> fmt::Debug for HopTarget<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stay => "Stay",
            Self::Dispatch(_) => "Dispatch",
            Self::Post(_) => "Post",
        })
    }
}

impl<S: Sender, D, R> fmt::Debug for HopSteps<S, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HopSteps").finish_non_exhaustive()
    }
}
