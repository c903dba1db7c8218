//! The operation behind `with_env`, `write_env`, `unstoppable` and `let_with_stop_source`: work that runs in an
//! environment of its own, made at the start from the one around it.

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

/// What to run, and what is to be different around it.
pub trait Scoped: Send {
    /// The work that runs in the changed environment.
    type Work: Sender;

    /// Called at the start, with the environment around. A panic is caught and is the outcome.
    fn enter(self, around: &Env) -> (Self::Work, Changes);
}

type ValueOf<C> = <<C as Scoped>::Work as Sender>::Value;
type ErrorOf<C> = <<C as Scoped>::Work as Sender>::Error;

/// Work in an environment of its own. Its outcome passes through unchanged.
pub struct ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    // Before the environment: the work is dropped while what it ran in is still there.
    work: Slot<<C::Work as Sender>::Operation<ScopedReceiver<C, R>>>,
    parts: UnsafeCell<Parts<C, R>>,
    _pinned: PhantomPinned,
}

/// Touched by `start` until the work is started, then only read, until the completion of the work takes the receiver.
struct Parts<C, R> {
    /// Before the receiver, whose environment it borrows from.
    env: Option<ScopedEnv>,
    scoped: Option<C>,
    receiver: Option<R>,
}

impl<C, R> ScopedOperation<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    /// The operation, not started.
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
        // SAFETY: nothing has been started, so the parts are ours; we are pinned, so the receiver may point back, and the
        // environment may borrow from that of our own receiver, which stays in its place until the work has completed.
        // After the work was started we touch nothing.
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

/// Passes the outcome of the work on, and answers with the changed environment.
pub struct ScopedReceiver<C, R>
where
    C: Scoped,
    R: Receiver<ValueOf<C>, ErrorOf<C>>,
{
    operation: NonNull<ScopedOperation<C, R>>,
}

// SAFETY: the operation is `Send`, and whoever completes the work is alone with it.
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
        // SAFETY: the work has completed: nobody else uses the operation, which lives until we complete its receiver.
        // The environment that borrows from the receiver's is not looked at any more.
        let receiver = unsafe { (*self.operation.as_ref().parts.get()).receiver.take() };
        if let Some(receiver) = receiver {
            receiver.complete(outcome);
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: the operation is alive, and its environment made, until the work completes.
        unsafe { (*self.operation.as_ref().parts.get_const()).env.as_deref().expect("made in `start`") }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: the operation is alive, and the receiver in its place, until the work completes.
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
