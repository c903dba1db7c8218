//! The operation of a boxed sender, without the type of its receiver: it runs one piece of work after the other, each the tail
//! call of the one before.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use super::any_sender::{AnySender, AnyWork};
use super::enclosing::Enclosing;
use super::env_above::EnvAbove;
use super::trampoline::{Head, Resumable, Trampoline};
use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{ScopedEnv, StartRendezvous, abort_on_unwind};
use convoke_core::{Env, Outcome, Panic};

/// The part of a boxed operation that does not depend on the type of its receiver.
///
/// 1. One piece of work, `current`, runs at a time. It ends when it completes its receiver or hands a tail
///    call to it. The receiver writes either to `next`, and is the only user of that while the work runs.
/// 2. The thread that started the work and the one that ends it meet at `rendezvous`. The second to arrive is
///    then the only user of everything: it destroys `current` and continues with `next`.
/// 3. `env` is written before the first work starts. It points to the environment of `receiver`, which is not
///    moved until the end. `own_env` borrows from it, and is written only between two pieces of work. `enclosing` is written at the same time; it is compared and never dereferenced.
#[repr(C)]
pub(crate) struct ErasedOperation<V, E> {
    // First, so that a pointer to it is a pointer to all of this.
    head: Head,
    pub(crate) enclosing: Cell<Option<Enclosing>>,
    current: UnsafeCell<Option<AnyWork>>,
    pub(crate) next: UnsafeCell<Option<Next<V, E>>>,
    rendezvous: StartRendezvous,
    pub(crate) env: EnvAbove,
    /// The environment of the work, if it has another executor than that of the receiver.
    own_env: UnsafeCell<Option<ScopedEnv>>,
    complete: unsafe fn(NonNull<Self>, Outcome<V, E>),
}

pub(crate) enum Next<V, E> {
    Sender(AnySender<V, E>),
    End(Outcome<V, E>),
}

// SAFETY: all parts are `Send` (values and errors by the bounds of `AnySender`), rules 1 and 2 give them to
// one thread at a time, and the environment is `Sync`.
unsafe impl<V: Send, E: Send> Send for ErasedOperation<V, E> {}

impl<V, E> ErasedOperation<V, E> {
    /// Creates the operation of this sender. It completes by `complete`, which gets the address of this.
    pub(crate) fn new(sender: AnySender<V, E>, complete: unsafe fn(NonNull<Self>, Outcome<V, E>)) -> Self {
        Self {
            head: Head::new(Self::resume),
            enclosing: Cell::new(None),
            current: UnsafeCell::new(None),
            next: UnsafeCell::new(Some(Next::Sender(sender))),
            rendezvous: StartRendezvous::new(),
            env: EnvAbove::new(),
            own_env: UnsafeCell::new(None),
            complete,
        }
    }

    /// Runs `next`, again and again, until a piece of work does not end at once or an outcome was delivered.
    ///
    /// # Safety
    /// Rule 2: the caller is the only user of the operation, which is pinned, and touches nothing of it
    /// afterwards.
    unsafe fn resume(head: NonNull<Head>, trampoline: &Trampoline) {
        let this = head.cast::<Self>();
        // SAFETY: the head is the first field (`repr(C)`), and the pointer was made from the whole operation.
        // Rule 2: we are the only user at the beginning of each round: in the first by the contract of `Resumable::new`,
        // later because `arrive` returned true. The work that is destroyed has ended. Rule 3: the environment above
        // outlives `own_env`, and no work that could use that runs here.
        unsafe {
            // Work that starts in here is directly inside `here`; receivers that complete in here are inside
            // `around`.
            let (here, around) = (Enclosing::new(head), this.as_ref().enclosing.get());
            while let Some(next) = (*this.as_ref().next.get()).take() {
                // The destructor of the work may panic: the receiver gets its outcome even so.
                let panic = Panic::of_drop((*this.as_ref().current.get()).take());
                trampoline.set_at(around);
                let mut sender = match (next, panic) {
                    (Next::Sender(mut sender), None) => {
                        if let Some(executor) = sender.take_executor() {
                            let changes = Changes::new().executor(executor);
                            let own = ScopedEnv::new(this.as_ref().env.get(), changes);
                            let _ = Panic::of_drop((*this.as_ref().own_env.get()).replace(own));
                        }
                        sender.into_inner()
                    }
                    (Next::Sender(sender), Some(panic)) => {
                        let outcome = Outcome::Panicked(panic).after_drop_of(sender);
                        return (this.as_ref().complete)(this, outcome);
                    }
                    (Next::End(outcome), None) => return (this.as_ref().complete)(this, outcome),
                    (Next::End(outcome), Some(panic)) => {
                        return (this.as_ref().complete)(this, outcome.or_panic(panic));
                    }
                };
                this.as_ref().rendezvous.reset();
                trampoline.set_at(Some(here));
                // The box is freed with the closure: the work, which may end the task, has taken the sender out.
                let work = abort_on_unwind(move || sender.connect(AnyReceiver { operation: this }));
                let work = (*this.as_ref().current.get()).insert(work);
                abort_on_unwind(|| work.as_mut().start());
                if !this.as_ref().rendezvous.arrive() {
                    return;
                }
            }
        }
    }
}

/// The receiver of the sender in the box: a pointer to the operation, independent of the type of its
/// receiver.
pub struct AnyReceiver<V, E> {
    operation: NonNull<ErasedOperation<V, E>>,
}

// SAFETY: the operation is `Send`, and rules 1 and 2 say when the receiver may use it.
unsafe impl<V, E> Send for AnyReceiver<V, E> {}

impl<V, E> AnyReceiver<V, E> {
    pub(crate) fn end_with(self, next: Next<V, E>) {
        // SAFETY: rule 1: the work is running, so the operation is alive and `next` is ours. Rule 2: after
        // `arrive` returned true we are the only user.
        unsafe {
            *self.operation.as_ref().next.get() = Some(next);
            if self.operation.as_ref().rendezvous.arrive() {
                let head = self.operation.cast::<Head>();
                Trampoline::resume(Resumable::new(head), Some(Enclosing::new(head)));
            }
        }
    }

    /// Returns the environment of the work.
    pub(crate) fn env_of_work(&self) -> &Env {
        // SAFETY: rule 3: `env` was written before the work started, and the receiver is not moved while the
        // work runs. `own_env` is not written while it runs.
        unsafe {
            let operation = self.operation.as_ref();
            (*operation.own_env.get_const()).as_deref().unwrap_or_else(|| operation.env.get())
        }
    }

    /// Returns the identity of the boxed operation that this belongs to.
    pub(crate) fn around(&self) -> Enclosing {
        Enclosing::new(self.operation)
    }
}

impl<V, E> fmt::Debug for AnyReceiver<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyReceiver").finish_non_exhaustive()
    }
}
