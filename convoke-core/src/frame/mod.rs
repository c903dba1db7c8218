//! Frames and the window: how an `async fn` finds its surroundings without being handed them.
//!
//! While a future is polled by something of ours, a thread-local, the *window*, points at the nearest [`Frame`]. A frame
//! knows who pushed it (its [`FrameOwner`]) and carries one bit, *stopped*: a leaf that ends by the stopped door sets it and
//! returns `Pending`; the owner sees it when the poll returns, drops the body in place, and passes the stop on. So a
//! stop unwinds any `async fn` in between, on stable Rust, without its help.
//!
//! The window is a cache that every poll sets and restores, like a stack; it never owns anything.

mod host;
mod watch;

pub use host::{Guest, Host, HostKind, HostRef};
pub use watch::StopWatch;

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::sync::thread_local;
use crate::{Env, StopReason};

/// Who pushed a frame: a task, a scope, a `using`. It answers for what runs inside.
pub trait FrameOwner {
    /// The environment of what runs inside, with a stop token that is asked when this owner is.
    fn env(&self) -> &Env;

    /// Why what runs inside was asked to stop, if it was.
    fn stop_reason(&self) -> Option<StopReason>;

    /// When it will be asked to stop at the latest.
    fn deadline(&self) -> Option<Instant>;

    /// The task below all frames.
    fn host(&self) -> &dyn Host;

    /// Whether what waits here with this waker is polled when this owner is asked to stop, so that it need not register to
    /// hear of it. So it is with the task's own waker, and with those of a combinator that then polls all its children.
    #[inline]
    fn polls_on_stop(&self, waker: &Waker) -> bool {
        self.host().is_own_waker(waker)
    }
}

/// One place on the way from a task down to what it waits for.
pub struct Frame<'a> {
    owner: &'a dyn FrameOwner,
    stopped: Cell<bool>,
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

thread_local! {
    /// The nearest frame, or null outside all tasks. Set by `Entered`, which borrows the frame.
    static WINDOW: Cell<*const Frame<'static>> = Cell::new(ptr::null());
}

/// Puts back what was in the window before, also when the body panics.
struct Entered(*const Frame<'static>);

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        WINDOW.with(|window| window.set(self.0));
    }
}

impl<'a> Frame<'a> {
    /// Polls `body` inside a frame of this owner.
    #[inline]
    pub fn poll<F: Future + ?Sized>(
        owner: &'a dyn FrameOwner,
        body: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Polled<F::Output> {
        let frame = Self { owner, stopped: Cell::new(false) };
        match frame.enter(|| body.poll(cx)) {
            Poll::Ready(value) => Polled::Ready(value),
            Poll::Pending if frame.stopped.get() => Polled::Stopped,
            Poll::Pending => Polled::Pending,
        }
    }

    /// Runs `f` with a frame of this owner in the window: for what is not a poll, such as dropping a body.
    #[inline]
    pub fn within<R>(owner: &'a dyn FrameOwner, f: impl FnOnce() -> R) -> R {
        Self { owner, stopped: Cell::new(false) }.enter(f)
    }

    #[inline]
    fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let frame = ptr::from_ref(self).cast::<Frame<'static>>();
        let _entered = Entered(WINDOW.with(|window| window.replace(frame)));
        f()
    }

    /// Calls `f` with the nearest frame, or `None` outside all tasks.
    #[inline]
    pub fn current<R>(f: impl FnOnce(Option<&Frame<'_>>) -> R) -> R {
        let frame = WINDOW.with(Cell::get);
        // SAFETY: an `Entered` further up on this stack set the pointer to a frame that is borrowed until it is taken back,
        // and the reference does not leave `f`.
        f(unsafe { frame.as_ref() })
    }

    /// Who pushed it.
    #[inline]
    pub fn owner(&self) -> &'a dyn FrameOwner {
        self.owner
    }

    /// Ends what runs in this frame by the stopped door. The caller is a future, and returns `Pending` now.
    #[inline]
    pub fn set_stopped(&self) {
        self.stopped.set(true);
    }

    /// Ends by the stopped door if a stop was asked for. True if so: the caller, a future, returns `Pending` now.
    #[inline]
    pub fn honour_stop(&self) -> bool {
        let asked = self.owner.stop_reason().is_some();
        if asked {
            self.set_stopped();
        }
        asked
    }
}

/// The environment below a frame is that of its owner.
impl FrameOwner for Frame<'_> {
    fn env(&self) -> &Env {
        self.owner.env()
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.owner.stop_reason()
    }

    fn deadline(&self) -> Option<Instant> {
        self.owner.deadline()
    }

    fn host(&self) -> &dyn Host {
        self.owner.host()
    }

    fn polls_on_stop(&self, waker: &Waker) -> bool {
        self.owner.polls_on_stop(waker)
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("stopped", &self.stopped.get())
            .field("stop_reason", &self.owner.stop_reason())
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
