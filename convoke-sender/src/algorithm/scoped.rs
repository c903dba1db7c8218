//! The sender behind `with_env`, `write_env`, `unstoppable`, `let_with_stop_source` and deadlines: work that
//! runs in its own environment, made at the start from the surrounding one. An adaptor implements [`Scoped`],
//! without `unsafe`; this file does the rest.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::operation::{Absent, Serial, SerialTurn, Steps};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::ScopedEnv;
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome, Panic};

/// Work, and the changes of the environment that it runs in.
pub trait Scoped: Send {
    /// The work that runs in the changed environment.
    type Work: Sender;
    /// True if the changes may set another executor: then less is known about where the work completes.
    const OTHER_EXECUTOR: bool = false;

    /// Returns the work and the changes. Called at the start, with the surrounding environment; a panic is
    /// caught and is the outcome.
    fn enter(self, around: &Env) -> (Self::Work, Changes);

    /// Returns the executor that a value will be completed on if the work starts in `around`, if more is
    /// known about that than the types tell.
    fn completes_on(&self, around: &Env) -> Option<ExecutorRef> {
        let _ = around;
        None
    }

    /// Returns the frame allocator that the work names for itself, if that is known before it starts.
    fn allocator(&self) -> Option<&FrameAllocator> {
        None
    }
}

/// A sender that runs work in its own environment. The outcome passes through unchanged.
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct InScope<C> {
    scoped: C,
}

impl<C> InScope<C> {
    /// Creates a sender that enters `scoped` when it starts.
    #[inline]
    pub fn new(scoped: C) -> Self {
        Self { scoped }
    }
}

type ValueOf<C> = <<C as Scoped>::Work as Sender>::Value;
type ErrorOf<C> = <<C as Scoped>::Work as Sender>::Error;

// SAFETY: rules 1 and 2 of `Sender`: `Serial` completes the receiver last, after the work. Rule 3:
// `COMPLETES` is that of the work, unless that runs with another executor.
#[diagnostic::do_not_recommend]
unsafe impl<C: Scoped> Sender for InScope<C> {
    type Value = ValueOf<C>;
    type Error = ErrorOf<C>;
    const COMPLETES: Completes = match C::OTHER_EXECUTOR {
        true => <C::Work as Sender>::COMPLETES.with_other_executor(),
        false => <C::Work as Sender>::COMPLETES,
    };
    type Operation<R: Receiver<ValueOf<C>, ErrorOf<C>>> = Serial<ScopedSteps<C, R>>;

    #[inline]
    fn connect<R: Receiver<ValueOf<C>, ErrorOf<C>>>(self, receiver: R) -> Self::Operation<R> {
        let steps = ScopedSteps { env: None, scoped: Some(self.scoped), _receiver: PhantomData };
        Serial::new(steps, (), receiver)
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        match Self::COMPLETES <= Completes::Here {
            true => Some(env.executor().clone()),
            false => self.scoped.completes_on(env),
        }
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.scoped.allocator()
    }
}

/// The steps of [`InScope`].
pub struct ScopedSteps<C, R> {
    env: Option<ScopedEnv>,
    scoped: Option<C>,
    _receiver: PhantomData<R>,
}

impl<C, R> Steps for ScopedSteps<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    type Work = C::Work;
    type Value = ValueOf<C>;
    type Error = ErrorOf<C>;
    type Receiver = R;
    type Next = Absent<ValueOf<C>, ErrorOf<C>>;
    type Shared = ();

    #[inline]
    fn start(mut turn: SerialTurn<Self>) {
        let Some(scoped) = turn.parts().scoped.take() else { return };
        let around = turn.receiver().env();
        match Panic::catch(|| scoped.enter(around)) {
            Ok((work, changes)) => {
                let env = turn.scoped_env(changes);
                turn.parts().env = Some(env);
                turn.run(work);
            }
            Err(panic) => turn.complete(Outcome::Panicked(panic)),
        }
    }

    #[inline]
    fn ended(turn: SerialTurn<Self>, outcome: OutcomeOf<C::Work>) {
        turn.complete(outcome);
    }

    #[inline]
    fn env<'a>(&'a self, _: &'a R) -> &'a Env {
        self.env.as_deref().expect("`start` makes the environment before it starts the work")
    }
}

impl<C, R> fmt::Debug for ScopedSteps<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedSteps").finish_non_exhaustive()
    }
}
