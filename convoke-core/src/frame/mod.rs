//! Frames and the window: how an `async fn` finds its surroundings without being handed them.
//!
//! While a future is polled by something of ours, a thread-local, the *window*, points at the nearest [`Frame`]. A frame
//! knows who pushed it (its [`FrameOwner`]) and carries one bit, *stopped*: a leaf that ends by the stopped door sets it and
//! returns `Pending`; the owner sees it when the poll returns, drops the body in place, and passes the stop on. So a
//! stop unwinds any `async fn` in between, on stable Rust, without its help.
//!
//! What must not be dropped yet, because it cleans up or waits for what it has stopped, says so at every wait
//! ([`Frame::hold`]); the owner then waits too. So nothing is cut short by a sibling that was faster to stop, in a foreign
//! `join!` for example.
//!
//! The window is a cache that every poll sets and restores, like a stack; it never owns anything.

#![allow(unsafe_code)]

mod kept;
mod owner;
mod pause;
mod waker_mark;
mod watch;

pub use kept::{KeepsFrame, KeptFrame};
pub use owner::{AdoptedMemory, OperationOwner, OwnerKind, OwnerRef};
pub use pause::Pause;

pub use waker_mark::WakerMark;
pub use watch::StopWatch;

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::executor::Waits;
use crate::this_thread::ThisThread;
use crate::{Env, StopReason};

/// Who pushed a frame: a task, a scope, a `using`. It answers for what runs inside.
pub trait FrameOwner {
    /// The environment of what runs inside, with a stop token that is asked when this owner is.
    fn env(&self) -> &Env;

    /// Why what runs inside was asked to stop, if it was.
    fn stop_reason(&self) -> Option<StopReason>;

    /// When it will be asked to stop at the latest.
    fn deadline(&self) -> Option<Instant>;

    /// The frame around what runs inside, if it is of the same task.
    fn around(&self) -> Option<&Frame<'_>> {
        None
    }
}

/// One place on the way from a task down to what it waits for.
///
/// What is needed at every wait is in here, so that it is there without a call.
pub struct Frame<'a> {
    owner: &'a dyn FrameOwner,
    task: OfTask<'a>,
    /// Whether a stop had been asked for when this poll began. One that is asked for meanwhile wakes the task again.
    asked: bool,
    /// Whether the owner keeps its frame: see `kept.rs`. A cell only to lie beside the next one: then both are written at once.
    keeps: Cell<bool>,
    held: Cell<bool>,
    /// The owner's, who keeps it from poll to poll.
    stopped: &'a Cell<bool>,
}

/// What frames inside of one another have in common.
#[derive(Clone, Copy)]
struct OfTask<'a> {
    owner: &'a dyn OperationOwner,
    /// The task's own, or that of a child of a combinator which polls all its children when it is asked to stop.
    waker: &'a Waker,
    waits: &'a Waits,
}

/// What came of polling a body inside a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<T> {
    /// It is done. That it was about to be stopped does not matter then.
    Ready(T),
    /// It waits.
    Pending,
    /// Something inside has ended by the stopped door. The body must be dropped now, and not polled again.
    Stopped,
}

/// Whether a frame was held before something in it was polled: see [`Frame::held_before`].
#[derive(Clone, Copy, Debug)]
pub struct HeldBefore(bool);

/// Puts back what was in the window before, also when the body panics. While it lives the frame is borrowed.
struct Entered(*const ());

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.window.set(self.0));
    }
}

impl<'a> Frame<'a> {
    /// The outermost frame of a task, for one poll of it: `waker` is the task's own, `asked` says whether it was asked to
    /// stop, and `stopped` is a bit that the task keeps for it.
    #[inline]
    pub fn outermost<T: FrameOwner + OperationOwner>(
        task: &'a T,
        waker: &'a Waker,
        waits: &'a Waits,
        asked: bool,
        stopped: &'a Cell<bool>,
    ) -> Self {
        let of_task = OfTask { owner: task, waker, waits };
        Self { owner: task, task: of_task, asked, keeps: Cell::new(false), held: Cell::new(false), stopped }
    }

    /// A frame of this owner inside this one. The owner keeps the bit `stopped` for it.
    #[inline]
    pub fn inside<'b>(
        &'b self,
        owner: &'b dyn FrameOwner,
        asked: bool,
        stopped: &'b Cell<bool>,
    ) -> Frame<'b> {
        Frame { owner, task: self.task, asked, keeps: Cell::new(false), held: Cell::new(false), stopped }
    }

    /// The same for one of several bodies, which the owner polls with wakers of their own. It polls all of them, woken or not,
    /// when it is asked to stop: so they need not register for that.
    pub fn inside_among<'b>(
        &'b self,
        owner: &'b dyn FrameOwner,
        waker: &'b Waker,
        asked: bool,
        stopped: &'b Cell<bool>,
    ) -> Frame<'b> {
        let task = OfTask { waker, ..self.task };
        Frame { owner, task, asked, keeps: Cell::new(false), held: Cell::new(false), stopped }
    }

    /// A frame inside this one that changes nothing, and catches a stop.
    #[inline]
    pub fn same<'b>(&'b self, stopped: &'b Cell<bool>) -> Frame<'b> {
        let Self { owner, task, asked, .. } = *self;
        Frame { owner, task, asked, keeps: self.keeps.clone(), held: Cell::new(false), stopped }
    }

    /// Polls `body` inside this frame.
    #[inline]
    pub fn poll<F: Future + ?Sized>(&self, mut body: Pin<&mut F>, cx: &mut Context<'_>) -> Polled<F::Output> {
        match self.within(|| body.as_mut().poll(cx)) {
            Poll::Ready(value) => Polled::Ready(value),
            Poll::Pending if self.held.get() && self.stopped.get() => self.poll_again(body, cx),
            Poll::Pending if self.held.get() => {
                // Whoever is around must not drop it either.
                Self::hold_current();
                Polled::Pending
            }
            Poll::Pending if self.stopped.get() => Polled::Stopped,
            Poll::Pending => Polled::Pending,
        }
    }

    /// Something inside was stopped, and something must not be dropped yet; unless it has been dropped since, in the same
    /// poll, by a foreign `select!`. Then nobody would ever poll again: so whoever holds is asked once more.
    #[cold]
    fn poll_again<F: Future + ?Sized>(&self, body: Pin<&mut F>, cx: &mut Context<'_>) -> Polled<F::Output> {
        self.held.set(false);
        match self.within(|| body.poll(cx)) {
            Poll::Ready(value) => Polled::Ready(value),
            Poll::Pending if self.held.get() => {
                Self::hold_current();
                Polled::Pending
            }
            Poll::Pending => Polled::Stopped,
        }
    }

    /// Runs `f` with this frame in the window.
    #[inline]
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        let frame = ptr::from_ref(self).cast::<()>();
        let _entered = Entered(ThisThread::with(|thread| thread.window.replace(frame)));
        f()
    }

    /// Calls `f` with the nearest frame, or `None` outside all tasks.
    #[inline]
    pub fn current<R>(f: impl FnOnce(Option<&Frame<'_>>) -> R) -> R {
        let frame = ThisThread::with(|thread| thread.window.get()).cast::<Frame<'_>>();
        // SAFETY: an `Entered` further up on this stack set the pointer to a frame that is borrowed until it is taken back,
        // and the reference does not leave `f`.
        f(unsafe { frame.as_ref() })
    }

    /// The environment of what runs inside, with a stop token.
    pub fn env(&self) -> &'a Env {
        self.owner.env()
    }

    /// Why what runs inside was asked to stop, if it was, this moment.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.owner.stop_reason()
    }

    /// When it will be asked to stop at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.owner.deadline()
    }

    /// Returns the task below all frames, which owns what is awaited in it.
    #[inline]
    pub fn operation_owner(&self) -> &'a dyn OperationOwner {
        self.task.owner
    }

    /// Whether this waker is the task's own, or one that hears of a stop as that does: then a stop request needs no other way
    /// to get there.
    #[inline]
    pub fn is_own_waker(&self, waker: &Waker) -> bool {
        self.task.waker.will_wake(waker)
    }

    /// Notes down where the task waits, for people who look.
    #[inline]
    pub fn waits_at(&self, place: &'static Location<'static>) {
        self.task.waits.set(place);
    }

    /// Ends what runs in this frame by the stopped door. The caller is a future, and returns `Pending` now.
    #[inline]
    pub fn set_stopped(&self) {
        self.stopped.set(true);
    }

    /// The caller, a future that returns `Pending` now, must not be dropped yet.
    #[inline]
    pub fn hold(&self) {
        self.held.set(true);
    }

    /// Whether somebody inside must not be dropped yet, as of the last poll.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }

    /// Those who have said [`hold`](Frame::hold) since the nearest frame was looked at, have ended meanwhile, in the same poll.
    #[inline]
    pub fn forget_holds(since: HeldBefore) {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.held.set(since.0);
            }
        });
    }

    /// Whether the nearest frame is held, for [`forget_holds`](Frame::forget_holds).
    #[inline]
    pub fn held_before() -> HeldBefore {
        HeldBefore(Frame::current(|frame| frame.is_some_and(Frame::is_held)))
    }

    /// The same as [`hold`](Frame::hold) for the nearest frame, if there is one.
    #[inline]
    pub fn hold_current() {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.hold();
            }
        });
    }

    /// Whether a stop had been asked for when this poll began.
    #[inline]
    pub fn is_asked_to_stop(&self) -> bool {
        self.asked
    }

    /// Ends by the stopped door if a stop was asked for. True if so: the caller, a future, returns `Pending` now.
    #[inline]
    pub fn honour_stop(&self) -> bool {
        if self.asked {
            self.set_stopped();
        }
        self.asked
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("stopped", &self.stopped.get())
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Panics: a future of ours that needs a task was polled outside of all tasks.
#[cold]
#[inline(never)]
#[track_caller]
pub fn outside_a_task(what: &str) -> ! {
    panic!(
        "{what} was polled outside a Convoke task, where there is nobody to come home to. Start the future with \
         `sync_wait(task(future))`, `launch(&executor)` or a scope"
    )
}
