//! The sender behind `let_value`, `let_error`, `let_stopped`, `sequence`, `finally` and others: work, then,
//! depending on its outcome, other work made by a function. An adaptor implements [`Continuation`], without
//! `unsafe`; this file does the rest.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::operation::{Serial, SerialTurn, Steps};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::ScopedEnv;
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome, Panic};

/// The decision after the first work has ended.
pub trait Continuation<V, E>: Send {
    /// The work that may follow.
    type Next: Sender;
    /// True if the work that follows sees the executor on which the first has completed with a value, where that
    /// is known, and not the one around.
    const FOLLOWS_EXECUTOR: bool = false;

    /// Is called right before the first work starts in `env`. Must not panic.
    #[inline]
    fn starts<S: Sender<Value = V, Error = E>>(&mut self, first: &S, env: &Env) {
        let _ = (first, env);
    }

    /// Decides, from the outcome of the first work, what follows.
    fn step(self, outcome: Outcome<V, E>) -> Step<Self::Next>;

    /// Returns the executor that a value will be completed on if the work starts in `env`, if more is known
    /// about that than the types tell.
    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        let _ = env;
        None
    }

    /// Returns the frame allocator that the work after the first names for itself, if that is known.
    fn allocator(&self) -> Option<&FrameAllocator> {
        None
    }
}

/// A decision: more work, or the end.
#[derive(Debug)]
pub enum Step<S: Sender> {
    /// Continue with this sender.
    Next(S),
    /// End with this outcome.
    Done(Outcome<S::Value, S::Error>),
}

impl<S: Sender> Step<S> {
    /// Continues with the sender that `f` makes, or ends with the panic of `f`.
    #[inline]
    pub fn made_by(f: impl FnOnce() -> S) -> Self {
        match Panic::catch(f) {
            Ok(sender) => Self::Next(sender),
            Err(panic) => Self::Done(Outcome::Panicked(panic)),
        }
    }

    /// Continues with the sender that `f` makes from a value; any other outcome is the end.
    #[inline]
    pub fn from_value<V>(outcome: Outcome<V, S::Error>, f: impl FnOnce(V) -> S) -> Self {
        match outcome {
            Outcome::Value(value) => Self::made_by(|| f(value)),
            Outcome::Error(error) => Self::Done(Outcome::Error(error)),
            Outcome::Stopped => Self::Done(Outcome::Stopped),
            Outcome::Panicked(panic) => Self::Done(Outcome::Panicked(panic)),
        }
    }
}

/// A sender that runs work and then what its continuation decides.
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Sequenced<S, C> {
    first: S,
    continuation: C,
}

impl<S, C> Sequenced<S, C> {
    /// Creates a sender that runs `first` and then what `continuation` decides.
    #[inline]
    pub fn new(first: S, continuation: C) -> Self {
        Self { first, continuation }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Serial` completes the receiver last, or hands it to the second work.
// Rule 3: `COMPLETES` combines those of both.
#[diagnostic::do_not_recommend]
unsafe impl<S, C> Sender for Sequenced<S, C>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
{
    type Value = <C::Next as Sender>::Value;
    type Error = <C::Next as Sender>::Error;
    const COMPLETES: Completes = S::COMPLETES.and(<C::Next as Sender>::COMPLETES);
    type Operation<R: Receiver<Self::Value, Self::Error>> = Serial<SequentialSteps<S, C, R>>;

    #[inline]
    fn connect<R: Receiver<Self::Value, Self::Error>>(self, receiver: R) -> Self::Operation<R> {
        let (first, continuation) = (Some(self.first), Some(self.continuation));
        let steps = SequentialSteps { first, continuation, env: None, _receiver: PhantomData };
        Serial::new(steps, (), receiver)
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        if Self::COMPLETES <= Completes::Here {
            Some(env.executor().clone())
        } else if C::FOLLOWS_EXECUTOR && <C::Next as Sender>::COMPLETES <= Completes::Here {
            self.first.completes_on(env)
        } else {
            self.continuation.completes_on(env)
        }
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.first.allocator().or_else(|| self.continuation.allocator())
    }
}

/// The steps of [`Sequenced`]. The operation of the first work is destroyed before the continuation decides.
/// The second is connected to the receiver itself, so that a tail call costs no frame, unless it sees another
/// executor than the receiver.
pub struct SequentialSteps<S, C, R> {
    first: Option<S>,
    continuation: Option<C>,
    /// The environment of the second work, if its executor is not the one around.
    env: Option<ScopedEnv>,
    _receiver: PhantomData<R>,
}

impl<S, C, R> Steps for SequentialSteps<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    type Work = S;
    type Value = <C::Next as Sender>::Value;
    type Error = <C::Next as Sender>::Error;
    type Receiver = R;
    type Next = C::Next;
    type Shared = ();
    const NEXT_MAY_HAVE_ENV: bool = C::FOLLOWS_EXECUTOR && matches!(S::COMPLETES, Completes::Anywhere);

    #[inline]
    fn start(mut turn: SerialTurn<Self>) {
        let Some(first) = turn.parts().first.take() else { return };
        let continuation = turn.parts().continuation.take().map(|mut continuation| {
            continuation.starts(&first, turn.receiver().env());
            continuation
        });
        turn.parts().continuation = continuation;
        if Self::NEXT_MAY_HAVE_ENV {
            match Panic::catch(|| executor_after(&first, turn.receiver().env())) {
                Ok(None) => {}
                Ok(Some(executor)) => {
                    let env = turn.scoped_env(Changes::new().executor(executor));
                    turn.parts().env = Some(env);
                }
                Err(panic) => return turn.complete(Outcome::Panicked(panic)),
            }
        }
        turn.run(first);
    }

    #[inline]
    fn ended(mut turn: SerialTurn<Self>, outcome: OutcomeOf<S>) {
        let Some(continuation) = turn.parts().continuation.take() else { return };
        // Caught, because `step` drops the function if it does not call it.
        let step = Panic::catch(|| continuation.step(outcome));
        match step.unwrap_or_else(|panic| Step::Done(Outcome::Panicked(panic))) {
            Step::Next(sender) => turn.run_next(sender),
            Step::Done(outcome) => turn.complete(outcome),
        }
    }

    #[inline]
    fn next_env(&self) -> Option<&Env> {
        self.env.as_deref()
    }
}

/// Returns the executor of what follows a sender that is started in `around`, if that is another one.
fn executor_after<S: Sender>(first: &S, around: &Env) -> Option<ExecutorRef> {
    first.completes_on(around).filter(|executor| executor != around.executor())
}

impl<S, C, R> fmt::Debug for SequentialSteps<S, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequentialSteps").finish_non_exhaustive()
    }
}
