//! The operation behind `let_value`, `let_error` and `let_stopped`: work, then, depending on its outcome, other
//! work made by a function.

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

/// What to do after the first work has ended.
pub trait Continuation<V, E>: Send {
    /// The work that may follow.
    type Next: Sender;

    /// Looks at the outcome of the first work.
    fn step(self, outcome: Outcome<V, E>) -> Step<Self::Next>;
}

/// Either more work, or the end.
#[derive(Debug)]
pub enum Step<S: Sender> {
    /// Go on with this.
    Next(S),
    /// That was all.
    Done(Outcome<S::Value, S::Error>),
}

impl<S: Sender> Step<S> {
    /// Goes on with what `f` makes, or ends with its panic.
    #[inline]
    pub fn made_by(f: impl FnOnce() -> S) -> Self {
        match Panic::catch(f) {
            Ok(sender) => Self::Next(sender),
            Err(panic) => Self::Done(Outcome::Panicked(panic)),
        }
    }
}

type NextOf<S, C> = <C as Continuation<<S as Sender>::Value, <S as Sender>::Error>>::Next;

/// First one sender, then another. The first operation is destroyed before the function runs; the second is
/// connected to the receiver itself, so that a tail call costs no frame.
pub struct Sequential<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    /// Taken by `start`, step by step: the sender when it is connected, the rest when it has completed.
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

// SAFETY: the cell is used by one thread at a time: by `start` until the first child is started, then by whoever
// completes that child. All parts are `Send`.
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
        // SAFETY: nothing has been started, so the parts are ours; we are pinned, so the receiver may point back.
        // After the first child was started we touch nothing.
        unsafe {
            let parts = &mut *this.as_ref().parts.get();
            if let Some(sender) = parts.sender.take() {
                let first = NonNull::from(&this.as_ref().first);
                Slot::run(first, || sender.connect(FirstReceiver { operation: this }));
            }
        }
    }
}

/// Takes the outcome of the first work: it leads back to the operation.
pub struct FirstReceiver<S, C, R>
where
    S: Sender,
    C: Continuation<S::Value, S::Error>,
    R: Receiver<<C::Next as Sender>::Value, <C::Next as Sender>::Error>,
{
    operation: NonNull<Sequential<S, C, R>>,
}

// SAFETY: the operation is `Send`, and whoever completes the first work is alone with it.
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
        // SAFETY: the first child has completed: nobody else uses the operation, which lives until we complete its
        // receiver or hand it to the second child.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.first.clear_after(outcome);
            let parts = &mut *operation.parts.get();
            let (Some(continuation), Some(receiver)) = (parts.continuation.take(), parts.receiver.take())
            else {
                return;
            };
            // The function, if it is not called, is dropped in there.
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
        // SAFETY: the operation is alive, and the receiver in its place, until the first child completes.
        unsafe {
            (*self.operation.as_ref().parts.get_const()).receiver.as_ref().expect("taken on completion").env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: the operation is alive, and the receiver in its place, until the first child completes.
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
