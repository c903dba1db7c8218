//! `nest`: a sender that a scope counts from now on, wherever it is started.

#![allow(unsafe_code)]

use core::fmt;

use crate::algorithm::either::EitherOperation;
use crate::operation::{Action, Leaf};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::{Env, ExecutorRef, Outcome};

use super::shared::Association;

/// The sender of [`nest`](super::ScopeHandle::nest).
#[must_use = "a sender does nothing until it is started, and the scope waits for it until it is dropped"]
pub struct Nest<S> {
    /// `None` if the scope was closed: then the sender has been dropped, and nothing points to the scope.
    nested: Option<Nested<S>>,
}

/// Dropped in this order: the sender before the association.
struct Nested<S> {
    sender: S,
    association: Association,
}

impl<S> Nest<S> {
    pub(super) fn new(sender: S, association: Option<Association>) -> Self {
        Self { nested: association.map(|association| Nested { sender, association }) }
    }

    /// Returns true if the scope counts it. One that is not counted completes as stopped and runs nothing.
    pub fn is_associated(&self) -> bool {
        self.nested.is_some()
    }
}

/// A clone is counted too. If the scope was closed meanwhile it is not, and completes as stopped.
impl<S: Clone> Clone for Nest<S> {
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
unsafe impl<S: Sender> Sender for Nest<S> {
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<S::Value, S::Error>> =
        EitherOperation<S::Operation<NestReceiver<R>>, Leaf<Refuse<S, R>>>;

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
}

crate::awaitable!([S] Nest<S>);

/// The receiver of a nested sender: passes the outcome on, and only then leaves the scope, so that what the
/// outcome refers to is alive while it is received.
#[derive(Debug)]
pub struct NestReceiver<R> {
    receiver: R,
    association: Association,
}

#[diagnostic::do_not_recommend]
impl<V, E, R: Receiver<V, E>> Receiver<V, E> for NestReceiver<R> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        let Self { receiver, association } = self;
        receiver.complete(outcome);
        drop(association);
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

impl<S> fmt::Debug for Nest<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nest").field("associated", &self.is_associated()).finish_non_exhaustive()
    }
}

impl<S, R> fmt::Debug for Refuse<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refuse")
    }
}
