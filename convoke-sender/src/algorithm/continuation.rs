//! The operation behind `let_value`, `let_error`, `let_stopped` and others: work, then, depending on its
//! outcome, other work made by a function.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use crate::{Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Outcome, Panic};

/// The decision after the first work has ended.
pub trait Continuation<V, E>: Send {
    /// The work that may follow.
    type Next: Sender;

    /// Decides, from the outcome of the first work, what follows.
    fn step(self, outcome: Outcome<V, E>) -> Step<Self::Next>;
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
}

type NextOf<S, C> = <C as Continuation<<S as Sender>::Value, <S as Sender>::Error>>::Next;

/// The operation that runs one sender, then another. The first operation is destroyed before the function
/// runs. The second is connected to the receiver itself, so that a tail call costs no frame.
///
/// 1. `start` is the only user of the parts and slots until the first child starts; then the completion of
///    that child is. While the first child runs it may read the receiver in `parts`, which is not moved.
pub struct Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    /// Taken step by step: the sender by `start`, the rest when the first child has completed.
    parts: UnsafeCell<Parts<S, C, R>>,
    first: Slot<S::Operation<FirstReceiver<S, C, R>>>,
    second: Slot<<NextOf<S, C> as Sender>::Operation<R>>,
    _pinned: PhantomPinned,
}

struct Parts<S, C, R> {
    sender: Option<S>,
    continuation: Option<C>,
    receiver: Option<R>,
}

impl<S, C, R> Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    #[inline]
    pub(crate) fn new(sender: S, continuation: C, receiver: R) -> Self {
        Self {
            parts: UnsafeCell::new(Parts {
                sender: Some(sender),
                continuation: Some(continuation),
                receiver: Some(receiver),
            }),
            first: Slot::new(),
            second: Slot::new(),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: rule 1: one thread at a time uses the cells, and all parts are `Send`.
unsafe impl<S, C, R> Sync for Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
}

impl<S, C, R> Operation for Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: nothing has started, so the parts are ours, and nothing is touched after the first
        // child has started. The operation is pinned, so the receiver may point to it.
        unsafe {
            let parts = &mut *this.as_ref().parts.get();
            if let Some(sender) = parts.sender.take() {
                let first = NonNull::from(&this.as_ref().first);
                Slot::run(first, || sender.connect(FirstReceiver { operation: this }));
            }
        }
    }
}

/// The receiver of the first work: a pointer to the operation.
pub struct FirstReceiver<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    operation: NonNull<Sequential<S, C, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the first child its only user.
unsafe impl<S, C, R> Send for FirstReceiver<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<S, C, R> Receiver<S::Value, S::Error> for FirstReceiver<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    #[inline]
    fn complete(self, outcome: Outcome<S::Value, S::Error>) {
        // SAFETY: rule 1: the first child has completed, so this call is the only user. The operation lives
        // until its receiver is completed or handed to the second child, which is done last.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.first.clear_after(outcome);
            let parts = &mut *operation.parts.get();
            let (Some(continuation), Some(receiver)) = (parts.continuation.take(), parts.receiver.take())
            else {
                return;
            };
            // Caught, because `step` drops the function if it does not call it.
            let step = Panic::catch(|| continuation.step(outcome));
            match step.unwrap_or_else(|panic| Step::Done(Outcome::Panicked(panic))) {
                Step::Next(sender) => {
                    Slot::run(NonNull::from(&operation.second), || sender.connect(receiver))
                }
                Step::Done(outcome) => receiver.complete(outcome),
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the first child runs, so the operation is alive and its receiver is not moved.
        unsafe {
            let parts = &*self.operation.as_ref().parts.get_const();
            parts.receiver.as_ref().expect("the receiver is taken when the first child completes").env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the first child runs, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().parts.get()).receiver.as_ref() }.and_then(Receiver::enclosing)
    }
}

impl<S, C, R> fmt::Debug for Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequential")
            .field("first", &self.first)
            .field("second", &self.second)
            .finish_non_exhaustive()
    }
}

impl<S, C, R> fmt::Debug for FirstReceiver<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstReceiver").finish_non_exhaustive()
    }
}
