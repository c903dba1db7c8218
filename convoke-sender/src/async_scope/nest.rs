//! `nest`: a sender that a scope counts from now on, wherever it is started.

#![allow(unsafe_code)]

use core::fmt;

use crate::algorithm::either::EitherOperation;
use crate::operation::{Action, Leaf};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome};

use super::{Association, AsyncScope, WorkName, leave};

/// Associates `sender` with a scope, and returns it as a sender that the scope keeps account of, from now on: until
/// that sender is dropped, or its operation is dropped unstarted or completes. Nothing is allocated, and nothing
/// started.
///
/// - *Completes with* the outcome of `sender`, unchanged; stopped if the scope did not let it in.
/// - *If dropped* before it starts, `sender` is dropped, and leaves the scope.
/// - *Runs on* the executors of `sender`.
///
/// ```
/// use convoke::sender::async_scope::nest;
/// use convoke::sender::prelude::*;
///
/// let scope = CountingScope::new();
/// let nested = nest(just(1), &scope);
/// assert_eq!(scope.use_count(), 1);
/// assert_eq!(sync_wait(nested), Outcome::Value(1));
/// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
/// ```
#[track_caller]
pub fn nest<S: Sender, P: AsyncScope>(sender: S, scope: &P) -> Nest<S, P::Association> {
    nest_named(WorkName::here(), sender, scope)
}

pub(crate) fn nest_named<S, P: AsyncScope>(name: WorkName, sender: S, scope: &P) -> Nest<S, P::Association> {
    let association = scope.associate(name);
    Nest { nested: association.map(|association| Nested { sender, association }) }
}

/// The sender of [`nest()`].
#[must_use = "a sender does nothing until it is started, and the scope waits for it until it is dropped"]
pub struct Nest<S, A> {
    /// `None` if the scope was closed: then the sender has been dropped, and nothing points to the scope.
    nested: Option<Nested<S, A>>,
}

/// Dropped in this order: the sender before the association.
struct Nested<S, A> {
    sender: S,
    association: A,
}

impl<S, A> Nest<S, A> {
    /// Returns true if the scope has let it in. One that it has not completes as stopped and runs nothing.
    pub fn is_associated(&self) -> bool {
        self.nested.is_some()
    }
}

/// A clone is counted too. If the scope was closed meanwhile it is not, and completes as stopped.
impl<S: Clone, A: Association> Clone for Nest<S, A> {
    fn clone(&self) -> Self {
        let nested = self.nested.as_ref().and_then(|nested| {
            let association = nested.association.again()?;
            Some(Nested { sender: nested.sender.clone(), association })
        });
        Self { nested }
    }
}

// SAFETY: rules 1 to 3 of `Sender`: the operation is that of the sender, which keeps to them, with a receiver
// that, when it is completed, completes ours at once, and then touches only what it has moved out; or a leaf,
// which completes in `start`.
#[diagnostic::do_not_recommend]
unsafe impl<S: Sender, A: Association> Sender for Nest<S, A> {
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<S::Value, S::Error>> =
        EitherOperation<S::Operation<NestReceiver<R, A>>, Leaf<Refuse<S, R>>>;

    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        match self.nested {
            Some(Nested { sender, association }) => {
                EitherOperation::Left(sender.connect(NestReceiver { receiver, association }))
            }
            None => EitherOperation::Right(Leaf::new(Refuse { receiver, sender: core::marker::PhantomData })),
        }
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        self.nested.as_ref().and_then(|nested| nested.sender.completes_on(env))
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.nested.as_ref().and_then(|nested| nested.sender.allocator())
    }
}

crate::awaitable!([S, A: Association] Nest<S, A>);

/// The receiver of a nested sender: passes the outcome on, and only then leaves the scope, so that what the
/// outcome refers to is alive while it is received.
#[derive(Debug)]
pub struct NestReceiver<R, A> {
    receiver: R,
    association: A,
}

#[diagnostic::do_not_recommend]
impl<V, E, R: Receiver<V, E>, A: Association> Receiver<V, E> for NestReceiver<R, A> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        let Self { receiver, association } = self;
        receiver.complete(outcome);
        leave(association);
    }

    #[inline]
    fn env(&self) -> &Env {
        self.receiver.env()
    }
}

/// The action that completes as stopped, for a sender that was nested in a closed scope.
pub struct Refuse<S, R> {
    receiver: R,
    sender: core::marker::PhantomData<fn() -> S>,
}

impl<S: Sender, R: Receiver<S::Value, S::Error>> Action for Refuse<S, R> {
    fn act(self) {
        self.receiver.complete(OutcomeOf::<S>::Stopped);
    }
}

impl<S, A> fmt::Debug for Nest<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nest").field("associated", &self.is_associated()).finish_non_exhaustive()
    }
}

impl<S, R> fmt::Debug for Refuse<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refuse")
    }
}
