//! The operation behind `continues_on`, `on` and `affine_on`: work whose outcome is carried to an executor.

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

/// Where an outcome is carried to.
pub trait Destination: Send {
    /// The executor it is carried to.
    type Executor: Executor;

    /// The way there from where the work has completed, in this environment.
    fn way(self, env: &Env) -> Way<Self::Executor>;
}

/// How an outcome gets to its executor.
pub enum Way<X> {
    /// It is there already.
    Stay,
    /// Through the queue, unless the executor says that it is there already.
    Dispatch(X),
    /// Through the queue.
    Post(X),
}

/// Work, then a hop. The outcome is kept in here while it is queued; the work's operation is destroyed before.
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
    /// Touched by one at a time: by `start` until the work is started, then by whoever completes the work, then by the
    /// holder of the runnable.
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

    /// # Safety
    /// Called once, with the header of a live operation whose outcome is kept, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until we complete its
        // receiver, and we are the only one to touch the parts.
        let parts = unsafe { &mut *(*header.cast::<Self>().as_ptr()).parts.get() };
        if let (Some(receiver), Some(outcome)) = (parts.receiver.take(), parts.outcome.take()) {
            // A value that cannot be brought to where it is wanted is given up; what went wrong is told anyway. It goes
            // before the receiver is told: what it borrows may be gone right after.
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
        // SAFETY: nothing is moved out of its place but what is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: nothing has been started, so the parts are ours; we are pinned, so the receiver may point back.
        // After the work was started we touch nothing.
        unsafe {
            if let Some(sender) = (*this.as_ref().parts.get()).sender.take() {
                let work = NonNull::from(&this.as_ref().work);
                Slot::run(work, || sender.connect(HopReceiver { operation: this }));
            }
        }
    }
}

/// Takes the outcome of the work and carries it on.
pub struct HopReceiver<S, D, R>
where
    S: Sender,
    D: Destination,
    R: Receiver<S::Value, S::Error>,
{
    operation: NonNull<HopOperation<S, D, R>>,
}

// SAFETY: the operation is `Send`, and whoever completes the work is alone with it.
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
        // SAFETY: the work has completed: nobody else uses the operation, which lives until its receiver is completed.
        // That is what the runnable does, the only one there is; the executor may run it, and so destroy the
        // operation, while `post` is still at work: nothing is touched afterwards, and the handle is our own.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.work.clear_after(outcome);
            let parts = &mut *operation.parts.get();
            let (Some(destination), Some(receiver)) = (parts.destination.take(), &parts.receiver) else {
                return;
            };
            // It may compare and clone executors of the program's.
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
        // SAFETY: the operation is alive, and the receiver in its place, until the work completes.
        unsafe {
            (*self.operation.as_ref().parts.get_const()).receiver.as_ref().expect("taken on completion").env()
        }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: the operation is alive, and the receiver in its place, until the work completes.
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
