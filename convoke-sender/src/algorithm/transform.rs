//! The sender behind all adaptors that merely transform an outcome: they say how, without unsafe; this file does the rest.

#![allow(unsafe_code)]

use super::trampoline::Enclosing;
use crate::{Completes, Receiver, Sender};
use convoke_core::{Env, ExecutorRef, Outcome, Panic};

/// A function of an outcome. Implementing it takes no `unsafe`, and makes an adaptor: [`Transformed`].
pub trait Transform<V, E>: Send {
    /// The new value.
    type Value;
    /// The new error.
    type Error;
    /// Whether only a value becomes a value. Otherwise it is not known where values come from: errors and stops may come
    /// home on other threads.
    const ONLY_VALUES: bool = true;

    /// The new outcome. If it panics, that is the outcome.
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<Self::Value, Self::Error>;
}

/// A sender with a transformed outcome.
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Transformed<S, T> {
    sender: S,
    transform: T,
}

impl<S: Sender, T: Transform<S::Value, S::Error>> Transformed<S, T> {
    /// `sender`, with its outcome transformed.
    #[inline]
    pub fn new(sender: S, transform: T) -> Self {
        Self { sender, transform }
    }
}

// SAFETY: the operation is that of the sender, with a receiver that completes ours when it is completed itself, on the
// spot: all that holds of the one holds of the other.
#[diagnostic::do_not_recommend]
unsafe impl<S: Sender, T: Transform<S::Value, S::Error>> Sender for Transformed<S, T> {
    type Value = T::Value;
    type Error = T::Error;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<T::Value, T::Error>> = S::Operation<TransformReceiver<R, T>>;

    #[inline]
    fn connect<R: Receiver<T::Value, T::Error>>(self, receiver: R) -> Self::Operation<R> {
        self.sender.connect(TransformReceiver { receiver, transform: self.transform })
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        if T::ONLY_VALUES {
            return self.sender.completes_on(env);
        }
        (Self::COMPLETES <= Completes::Here).then(|| env.executor().clone())
    }
}

/// Between the sender and the receiver of its transformed outcome.
#[derive(Debug)]
pub struct TransformReceiver<R, T> {
    receiver: R,
    transform: T,
}

#[diagnostic::do_not_recommend]
impl<V, E, R, T> Receiver<V, E> for TransformReceiver<R, T>
where
    T: Transform<V, E>,
    R: Receiver<T::Value, T::Error>,
{
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        let outcome = Panic::catch(|| self.transform.apply(outcome)).unwrap_or_else(Outcome::Panicked);
        self.receiver.complete(outcome);
    }

    #[inline]
    fn env(&self) -> &Env {
        self.receiver.env()
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        self.receiver.enclosing()
    }
}
