//! The operation behind `with_env`, `write_env`, `unstoppable` and `let_with_stop_source`: work that runs in
//! its own environment, made at the start from the surrounding one.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use crate::{Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::Operation;
use convoke_core::raw::ScopedEnv;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, Outcome, Panic};

/// Work, and the changes of the environment that it runs in.
pub trait Scoped: Send {
    /// The work that runs in the changed environment.
    type Work: Sender;

    /// Returns the work and the changes. Called at the start, with the surrounding environment; a panic is
    /// caught and is the outcome.
    fn enter(self, around: &Env) -> (Self::Work, Changes);
}

type ValueOf<C> = <<C as Scoped>::Work as Sender>::Value;
type ErrorOf<C> = <<C as Scoped>::Work as Sender>::Error;

/// The operation that runs work in its own environment. The outcome passes through unchanged.
///
/// 1. `start` is the only user until the work starts. Then the parts are read-only, until the completion of
///    the work, the only user by then, takes the receiver.
pub struct ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    // Before the environment: the work is dropped while its environment still exists.
    work: Slot<<C::Work as Sender>::Operation<ScopedReceiver<C, R>>>,
    parts: UnsafeCell<Parts<C, R>>,
    _pinned: PhantomPinned,
}

/// Rule 1 of `ScopedOperation`.
struct Parts<C, R> {
    /// Before the receiver, because it borrows from the receiver's environment.
    env: Option<ScopedEnv>,
    scoped: Option<C>,
    receiver: Option<R>,
}

impl<C, R> ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    /// Creates the operation.
    #[inline]
    pub fn new(scoped: C, receiver: R) -> Self {
        let parts = Parts { env: None, scoped: Some(scoped), receiver: Some(receiver) };
        Self { work: Slot::new(), parts: UnsafeCell::new(parts), _pinned: PhantomPinned }
    }
}

impl<C, R> Operation for ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: nothing has started, so the parts are ours, and nothing is touched after the work
        // has started. The operation is pinned, so the receiver may point to it, and the scoped environment
        // may borrow from that of our own receiver, which is not moved until the work has completed.
        unsafe {
            let Parts { env, scoped, receiver } = &mut *this.as_ref().parts.get();
            let (Some(scoped), Some(around)) = (scoped.take(), receiver.as_ref().map(Receiver::env)) else {
                return;
            };
            match Panic::catch(|| scoped.enter(around)) {
                Ok((work, changes)) => {
                    *env = Some(ScopedEnv::new(around, changes));
                    let slot = NonNull::from(&this.as_ref().work);
                    Slot::run(slot, || work.connect(ScopedReceiver { operation: this }));
                }
                Err(panic) => {
                    if let Some(receiver) = receiver.take() {
                        receiver.complete(Outcome::Panicked(panic));
                    }
                }
            }
        }
    }
}

/// The receiver of the work: passes the outcome on, and answers with the changed environment.
pub struct ScopedReceiver<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    operation: NonNull<ScopedOperation<C, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the work its only user.
unsafe impl<C, R> Send for ScopedReceiver<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
}

#[diagnostic::do_not_recommend]
impl<C, R> Receiver<ValueOf<C>, ErrorOf<C>> for ScopedReceiver<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    #[inline]
    fn complete(self, outcome: Outcome<ValueOf<C>, ErrorOf<C>>) {
        // SAFETY: rule 1: the work has completed, so this call is the only user. The operation lives until
        // its receiver is completed. The environment that borrows from the receiver's is not used any more.
        let receiver = unsafe { (*self.operation.as_ref().parts.get()).receiver.take() };
        if let Some(receiver) = receiver {
            receiver.complete(outcome);
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the work runs, so the operation is alive and its environment is read-only.
        let env = unsafe { &(*self.operation.as_ref().parts.get_const()).env };
        env.as_deref().expect("`start` makes the environment before it starts the work")
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the work runs, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().parts.get()).receiver.as_ref() }.and_then(Receiver::enclosing)
    }
}

impl<C, R> fmt::Debug for ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedOperation").field("work", &self.work).finish_non_exhaustive()
    }
}

impl<C, R> fmt::Debug for ScopedReceiver<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedReceiver").finish_non_exhaustive()
    }
}
