//! The handle of a child that returns something.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::meeting::{Abandon, Look, Meeting, Wait};
use convoke_core::raw::sync::thread;
use convoke_core::raw::{Frame, Home, StopWatch, WakerMark, outside_a_task};
use convoke_core::{Outcome, Panic};

use super::blocking::thread_waker;
use crate::task::{TaskHeader, drop_handle, drop_reference};

/// What [`Scope::spawn_future`](super::Scope::spawn_future) returns: awaits what a child returns.
///
/// - *Completes with* what the child returned. Stopped, if the child was, or if the one who waits is. If the child
///   panicked, the panic goes on here, with the child's name.
/// - *If dropped*, the child is asked to stop; the scope waits for it as for all others.
/// - *Panics* outside a task.
#[must_use = "dropping the handle asks the child to stop; await it, or start the child with `spawn`"]
pub struct Handle<T, K: Kind = Anywhere> {
    child: NonNull<TaskHeader>,
    meeting: NonNull<Meeting>,
    waker: NonNull<Option<Waker>>,
    outcome: NonNull<Outcome<T>>,
    /// The waker that was put in place, to tell whether another one comes. Compared, never used.
    placed: Option<WakerMark>,
    taken: bool,
    /// The child was, and so is whoever awaits it.
    stopped: bool,
    place: &'static Location<'static>,
    watch: StopWatch,
    _outcome: PhantomData<(Outcome<T>, K)>,
}

/// Where a handle may go: anywhere, or not away from the thread that its child runs on, which is cheaper.
pub trait Kind: sealed::Sealed {
    #[doc(hidden)]
    const AT_HOME: bool;
}

/// A handle that may go anywhere.
#[derive(Debug)]
pub struct Anywhere(());

/// A handle that stays on the thread of its child.
#[derive(Debug)]
pub struct AtHome(PhantomData<*mut ()>);

impl Kind for Anywhere {
    const AT_HOME: bool = false;
}

impl Kind for AtHome {
    const AT_HOME: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Anywhere {}
    impl Sealed for super::AtHome {}
}

// SAFETY: what it leads to lies in the child, of which it has a reference; the meeting says who has what, and the outcome may
// go from the child's thread to this one if `T` is `Send`.
unsafe impl<T: Send> Send for Handle<T, Anywhere> {}
// SAFETY: a shared handle gives access to nothing.
unsafe impl<T: Send> Sync for Handle<T, Anywhere> {}

impl<T, K: Kind> Unpin for Handle<T, K> {}

impl<T, K: Kind> Handle<T, K> {
    /// # Safety
    /// The caller gives up a reference of the child, in which the others lie; or, if it stays at home, the handle that the child
    /// was made with, on the thread of its home.
    pub(super) unsafe fn new(
        child: NonNull<TaskHeader>,
        meeting: NonNull<Meeting>,
        waker: NonNull<Option<Waker>>,
        outcome: NonNull<Outcome<T>>,
        place: &'static Location<'static>,
    ) -> Self {
        Self {
            child,
            meeting,
            waker,
            outcome,
            placed: None,
            taken: false,
            stopped: false,
            place,
            watch: StopWatch::new(),
            _outcome: PhantomData,
        }
    }

    /// Asks the child to stop. It is awaited as before.
    pub fn request_stop(&self) {
        let _others_out = self.keep_others_out();
        // SAFETY: we have a reference; and one that stays at home is there, or others are kept out.
        unsafe {
            if K::AT_HOME {
                TaskHeader::ask_stop_at_home(self.child);
            } else {
                TaskHeader::ask_stop(self.child);
            }
        }
    }

    fn meeting(&self) -> &Meeting {
        // SAFETY: it lies in the child, of which we have a reference.
        unsafe { self.meeting.as_ref() }
    }

    /// For one that stays at home, and is used while its home is not run: nobody else is there then, unless it is closed.
    #[inline]
    fn keep_others_out(&self) -> Option<impl Sized + use<T, K>> {
        // SAFETY: we have a reference.
        (K::AT_HOME && !unsafe { self.child.as_ref() }.is_at_home()).then(Home::keep_out)
    }

    /// Whether the outcome is there; if not, the waker is in its place.
    #[inline]
    fn look(&mut self, waker: &Waker) -> Look {
        if self.meeting().look() == Look::Done {
            return Look::Done;
        }
        let identity = WakerMark::of(waker);
        match self.placed {
            Some(placed) if placed == identity => return self.meeting().look(),
            Some(_) => {
                // Before: the child waits while we change it, and the waker may be anybody's.
                let waker = waker.clone();
                let look = self.meeting().change();
                if look == Look::Done {
                    return look;
                }
                // SAFETY: we are changing it: then it is ours.
                let before = unsafe { self.waker.as_mut().replace(waker) };
                self.meeting().changed();
                self.placed = Some(identity);
                drop(before);
            }
            None => {
                // SAFETY: nobody waits yet: then it is ours.
                unsafe { *self.waker.as_mut() = Some(waker.clone()) };
                let meeting = self.meeting();
                let wait = if K::AT_HOME { meeting.wait_here() } else { meeting.wait() };
                if wait == Wait::Done {
                    return Look::Done;
                }
            }
        }
        self.placed = Some(identity);
        Look::NotYet
    }
}

impl<T> Handle<T, Anywhere> {
    /// Blocks this thread until the child has ended.
    pub(super) fn wait(mut self) -> Outcome<T> {
        let waker = thread_waker();
        while self.look(&waker) == Look::NotYet {
            thread::park();
        }
        self.taken = true;
        // SAFETY: the meeting says that the outcome is there and ours; it is taken once.
        unsafe { self.outcome.read() }
    }
}

impl<T, K: Kind> Future for Handle<T, K> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again, beside something that must not be dropped yet.
                frame.set_stopped();
                return Poll::Pending;
            }
            assert!(!self.taken, "polled after it has ended");
            let _others_out = self.keep_others_out();
            if self.look(cx.waker()) == Look::NotYet {
                if !frame.honour_stop() {
                    frame.waits_at(self.place);
                    self.watch.watch(frame, cx);
                }
                return Poll::Pending;
            }
            self.taken = true;
            // SAFETY: the meeting says that the outcome is there and ours; it is taken once.
            match unsafe { self.outcome.read() } {
                Outcome::Value(value) => Poll::Ready(value),
                Outcome::Error(never) => never.absurd(),
                Outcome::Panicked(panic) => panic.resume(),
                Outcome::Stopped => {
                    self.stopped = true;
                    frame.set_stopped();
                    Poll::Pending
                }
            }
        })
    }
}

impl<T, K: Kind> Drop for Handle<T, K> {
    fn drop(&mut self) {
        let _others_out = self.keep_others_out();
        if !self.taken {
            // Before it is abandoned: then it still has its outcome to give to us.
            self.request_stop();
            let abandoned = if K::AT_HOME { self.meeting().abandon_here() } else { self.meeting().abandon() };
            if abandoned == Abandon::Free {
                // SAFETY: the meeting says that the outcome is there and ours. The hook has told of a panic in it.
                let _ = Panic::catch(|| unsafe { self.outcome.drop_in_place() });
            }
        }
        // SAFETY: we have it, and give it up.
        unsafe {
            if K::AT_HOME {
                drop_handle(self.child);
            } else {
                drop_reference(self.child);
            }
        }
    }
}

impl<T, K: Kind> fmt::Debug for Handle<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("taken", &self.taken)
            .field("started at", &self.place)
            .finish_non_exhaustive()
    }
}
