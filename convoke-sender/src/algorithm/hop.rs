//! The operation behind `continues_on`, `on` and `affine_on`: work whose outcome is moved to an executor.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::trampoline::Enclosing;
use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Call, Header, Runnable, WorkKind, dispatch_contained, post_contained};
use convoke_core::{Env, Executor, Outcome, Panic};

/// The choice of the executor that an outcome is moved to.
pub trait Destination: Send {
    /// The type of that executor.
    type Executor: Executor;

    /// Returns the way to the executor, for work that has completed in this environment.
    fn way(self, env: &Env) -> Way<Self::Executor>;
}

/// The way in which an outcome gets to its executor.
pub enum Way<X> {
    /// Complete on the current thread: it is on the executor already.
    Stay,
    /// Through the queue, unless the executor says that the thread is on it already.
    Dispatch(X),
    /// Through the queue, always.
    Post(X),
}

/// The operation that runs work and then hops. It stores the outcome while it is queued; the work's operation
/// is destroyed before that.
///
/// 1. One thread at a time uses everything: `start` until the work starts, then the completion of the work,
///    then the holder of the runnable. While the work runs it may read the receiver in `parts`, which is not
///    moved.
#[repr(C)]
pub struct HopOperation<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    work: Slot<S::Operation<HopReceiver<S, D, R>>>,
    /// Rule 1.
    parts: UnsafeCell<Parts<S, D, R>>,
    _pinned: PhantomPinned,
}

struct Parts<S: Sender, D, R> {
    sender: Option<S>,
    destination: Option<D>,
    receiver: Option<R>,
    outcome: Option<OutcomeOf<S>>,
}

impl<S, D, R> HopOperation<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    pub(crate) fn new(sender: S, destination: D, receiver: R) -> Self {
        let parts = Parts {
            sender: Some(sender),
            destination: Some(destination),
            receiver: Some(receiver),
            outcome: None,
        };
        Self {
            header: Header::new(const { &WorkKind::new(Self::call) }),
            work: Slot::new(),
            parts: UnsafeCell::new(parts),
            _pinned: PhantomPinned,
        }
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Called once, with the header of a live operation whose outcome is stored, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until its
        // receiver is completed. Rule 1: the runnable is the only user.
        let parts = unsafe { &mut *(*header.cast::<Self>().as_ptr()).parts.get() };
        if let (Some(receiver), Some(outcome)) = (parts.receiver.take(), parts.outcome.take()) {
            // A value that cannot get to its executor is dropped; an error or a panic is passed on. The drop
            // comes before the completion, because what the value borrows may be gone right after that.
            let outcome = match outcome {
                Outcome::Value(value) if call == Call::Stop => {
                    Panic::catch(|| drop(value)).map_or_else(Outcome::Panicked, |()| Outcome::Stopped)
                }
                outcome => outcome,
            };
            receiver.complete(outcome);
        }
    }
}

impl<S, D, R> Operation for HopOperation<S, D, R>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: only fields that are not structurally pinned are moved out.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 1: nothing has started, so the parts are ours, and nothing is touched after the work
        // has started. The operation is pinned, so the receiver may point to it.
        unsafe {
            if let Some(sender) = (*this.as_ref().parts.get()).sender.take() {
                let work = NonNull::from(&this.as_ref().work);
                Slot::run(work, || sender.connect(HopReceiver { operation: this }));
            }
        }
    }
}

/// The receiver of the work: stores the outcome and hops.
pub struct HopReceiver<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    operation: NonNull<HopOperation<S, D, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the work its only user.
unsafe impl<S, D, R> Send for HopReceiver<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<S, D, R> Receiver<S::Value, S::Error> for HopReceiver<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    fn complete(self, outcome: OutcomeOf<S>) {
        let header = self.operation.cast::<Header>();
        // SAFETY: rule 1: the work has completed, so this call is the only user, until it makes the only
        // runnable. The runnable completes the receiver, and the executor may run it, and so free the
        // operation, while `post_contained` still runs: nothing is touched afterwards, and the handle is our
        // own.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.work.clear_after(outcome);
            let parts = &mut *operation.parts.get();
            let (Some(destination), Some(receiver)) = (parts.destination.take(), &parts.receiver) else {
                return;
            };
            // Caught, because it may compare and clone executors that the program implements.
            let way = Panic::catch(|| destination.way(receiver.env()));
            let (way, outcome) = match way {
                Ok(way) => (way, outcome),
                Err(panic) => (Way::Stay, outcome.or_panic(panic)),
            };
            parts.outcome = Some(outcome);
            match way {
                Way::Stay => Runnable::new(header).run(),
                Way::Post(executor) => post_contained(executor, Runnable::new(header)),
                Way::Dispatch(executor) => {
                    if let Some(runnable) = dispatch_contained(executor, Runnable::new(header)) {
                        runnable.run();
                    }
                }
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the work runs, so the operation is alive and its receiver is not moved.
        unsafe {
            let parts = &*self.operation.as_ref().parts.get_const();
            parts.receiver.as_ref().expect("the receiver is taken after the work has completed").env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the work runs, so the operation is alive and its receiver is not moved.
        unsafe { (*self.operation.as_ref().parts.get_const()).receiver.as_ref() }
            .and_then(Receiver::enclosing)
    }
}

impl<X> fmt::Debug for Way<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stay => "Stay",
            Self::Dispatch(_) => "Dispatch",
            Self::Post(_) => "Post",
        })
    }
}

impl<S, D, R> fmt::Debug for HopOperation<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HopOperation").field("work", &self.work).finish_non_exhaustive()
    }
}

impl<S, D, R> fmt::Debug for HopReceiver<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HopReceiver").finish_non_exhaustive()
    }
}
