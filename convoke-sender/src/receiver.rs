//! The trait of the target of an outcome.

use crate::erased::{AnySender, Enclosing};
use convoke_core::raw::{AdoptedReceiver, OnComplete};
use convoke_core::{Env, Outcome};

/// The target of the outcome of a piece of work. It is an obligation: work that was started completes its
/// receiver exactly once. A receiver whose operation is dropped before it starts is dropped with it.
///
/// A receiver is `Send`, because work may complete on another thread than the one that started it. The
/// closures that adaptors store must therefore be `Send`; the values that pass through need not be, unless
/// they are stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take an outcome with value `{V}` and error `{E}`",
    note = "a receiver must implement `Receiver<V, E>` for the `Value` and `Error` of the sender it is connected to, \
            and be `Send`"
)]
pub trait Receiver<V, E>: Send {
    /// Takes the outcome. The operation that calls this does not touch itself afterwards: the receiver may
    /// have freed it.
    fn complete(self, outcome: Outcome<V, E>);

    /// Returns the environment that the work runs in.
    fn env(&self) -> &Env;

    /// Offers a boxed sender that is about to be started with this receiver. A receiver that itself belongs
    /// to a boxed sender takes it, and with it the obligation: the work that offered it has ended, as if it
    /// had completed. All other receivers return both.
    #[doc(hidden)]
    #[inline]
    fn tail_call(self, sender: AnySender<V, E>) -> Result<(), (Self, AnySender<V, E>)>
    where
        Self: Sized,
    {
        Err((self, sender))
    }

    /// Returns the boxed operation that the work is part of, if that is known: boxed work directly inside it
    /// need not start and complete by recursion. The receivers of adaptors ask the one that they wrap.
    #[doc(hidden)]
    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<V, E> Receiver<V, E> for AdoptedReceiver<V, E> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        OnComplete::complete(self, outcome);
    }

    #[inline]
    fn env(&self) -> &Env {
        OnComplete::env(self)
    }
}

/// A receiver as an [`OnComplete`], for operations that are not made from a sender: of tasks and transfers.
#[derive(Debug)]
pub struct ReceiverOf<R>(pub R);

impl<V, E, R: Receiver<V, E>> OnComplete<Outcome<V, E>> for ReceiverOf<R> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        self.0.complete(outcome);
    }

    #[inline]
    fn env(&self) -> &Env {
        self.0.env()
    }
}
