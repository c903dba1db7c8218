//! The sender behind all adaptors that only transform an outcome. An adaptor implements [`Transform`],
//! without `unsafe`; this file does the rest.

#![allow(unsafe_code)]

use crate::erased::Enclosing;
use crate::{Completes, Receiver, Sender};
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome, Panic};

/// A function of an outcome. Implementing it needs no `unsafe`, and makes an adaptor: [`Transformed`].
pub trait Transform<V, E>: Send {
    /// The type of the new value.
    type Value;
    /// The type of the new error.
    type Error;
    /// True if only a value becomes a value. If false, it is not known where values are completed, because
    /// errors and stops may be completed on other threads.
    const ONLY_VALUES: bool = true;

    /// Returns the new outcome. If it panics, the panic is the outcome.
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
    /// Creates a sender whose outcome is that of `sender`, transformed.
    #[inline]
    pub fn new(sender: S, transform: T) -> Self {
        Self { sender, transform }
    }
}

// SAFETY: rules 1 to 3 of `Sender`: the operation is that of the sender, which keeps to them. Its receiver,
// when it is completed, completes ours at once.
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

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.sender.allocator()
    }
}

/// The receiver of the sender: transforms the outcome and passes it on.
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
