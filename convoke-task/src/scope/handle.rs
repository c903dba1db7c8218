//! The handle of a child that returns something.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::sync::thread;
use convoke_core::raw::{Abandon, Peek, Wait};
use convoke_core::raw::{Frame, OwnerThread, Runnable, StopWatch, WakerMark, outside_a_task};
use convoke_core::{Outcome, Panic};

use super::blocking::thread_waker;
use super::handle_rendezvous::HandleRendezvous;
use crate::task::{TaskHeader, drop_handle, drop_reference};

/// What [`Scope::spawn_future`](super::Scope::spawn_future) returns: awaits what a child returns.
///
/// - *Completes with* what the child returned. Stopped, if the child was, or if the one who waits is. If the child
///   panicked, the panic goes on here, with the child's name.
/// - *If dropped*, the child is asked to stop; the scope waits for it as for all others.
/// - *Panics* outside a task, unless the child has returned by then.
///
/// Who asks a child to stop and goes on to await it is stopped with it. To be told instead, catch that:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let child = s.spawn_future(async { forever().await });
///         child.request_stop();
///         catch_stopped(child).await.is_err()
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[doc(alias = "JoinHandle")]
#[must_use = "dropping the handle asks the child to stop; await it, or start the child with `spawn`"]
pub struct Handle<T, K: Kind = Anywhere> {
    /// Until its outcome was taken: then we let it go.
    child: Option<NonNull<TaskHeader>>,
    outcome: NonNull<Outcome<T>>,
    /// The waker that was put in place, to tell whether another one comes. Compared, never used.
    placed: Option<WakerMark>,
    watch: StopWatch,
    /// The child was, and so is whoever awaits it.
    stopped: bool,
    _outcome: PhantomData<(Outcome<T>, K)>,
}

/// Where a handle may go: anywhere, or not away from the thread that its child runs on, which is cheaper.
pub trait Kind: sealed::Sealed {
    #[doc(hidden)]
    const AT_HOME: bool;

    /// What the child keeps for its handle of where it was started.
    #[doc(hidden)]
    type Kept: From<&'static Location<'static>> + Into<Option<&'static Location<'static>>> + Copy;
}

/// Nothing: the child's header says it for as long as it has not left, and nobody else makes it leave.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NotKept;

impl From<&'static Location<'static>> for NotKept {
    #[inline]
    fn from(_: &'static Location<'static>) -> Self {
        Self
    }
}

impl From<NotKept> for Option<&'static Location<'static>> {
    fn from(_: NotKept) -> Self {
        None
    }
}

/// A handle that may go anywhere.
#[derive(Debug)]
pub struct Anywhere(());

/// A handle that stays on the thread of its child.
#[derive(Debug)]
pub struct OnOwnerThread(PhantomData<*mut ()>);

impl Kind for Anywhere {
    const AT_HOME: bool = false;
    type Kept = &'static Location<'static>;
}

impl Kind for OnOwnerThread {
    const AT_HOME: bool = true;
    type Kept = NotKept;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Anywhere {}
    impl Sealed for super::OnOwnerThread {}
}

// SAFETY: what it leads to lies in the child, of which it has a reference; the meeting says who has what, and the outcome may
// go from the child's thread to this one if `T` is `Send`.
unsafe impl<T: Send> Send for Handle<T, Anywhere> {}
// SAFETY: a shared handle gives access to nothing.
unsafe impl<T: Send> Sync for Handle<T, Anywhere> {}

impl<T, K: Kind> Unpin for Handle<T, K> {}

impl<T, K: Kind> Handle<T, K> {
    /// # Safety
    /// The caller gives up a reference of the child, in which the outcome will lie; or, if it stays at home, the handle that the
    /// child was made with, on the thread of its home. The pointer to the child is one to all of it.
    #[inline]
    pub(super) unsafe fn new(child: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) -> Self {
        let (placed, watch) = (None, StopWatch::new());
        Self { child: Some(child), outcome, placed, watch, stopped: false, _outcome: PhantomData }
    }

    /// Asks the child to stop. It is awaited as before. The child sees the same reason as if the handle were dropped,
    /// [`StopReason::Abandoned`](convoke_core::StopReason::Abandoned).
    #[doc(alias = "abort")]
    pub fn request_stop(&self) {
        let Some(child) = self.child else { return };
        let _others_out = Self::keep_others_out(child);
        // SAFETY: we have a reference; and one that stays at home is there, or others are kept out.
        unsafe { Self::ask_stop(child) };
    }

    /// # Safety
    /// The child is ours; and if the handle stays at home we are there, or others are kept out.
    unsafe fn ask_stop(child: NonNull<TaskHeader>) {
        // SAFETY: the caller's.
        unsafe {
            if K::AT_HOME {
                TaskHeader::ask_stop_at_home(child);
            } else {
                TaskHeader::ask_stop(child);
            }
        }
    }

    /// Whether nobody else is at a child whose handle stays at home: this is its home.
    #[inline]
    fn is_home(child: NonNull<TaskHeader>) -> bool {
        // SAFETY: we have a reference.
        !K::AT_HOME || unsafe { child.as_ref() }.is_at_home()
    }

    /// For one that stays at home, and is used while its home is not run: nobody else is there then, unless it is closed.
    fn keep_others_out(child: NonNull<TaskHeader>) -> Option<impl Sized + use<T, K>> {
        // SAFETY: we have a reference.
        (!Self::is_home(child)).then(|| OwnerThread::keep_out(unsafe { child.as_ref() }.home_number()))
    }

    /// The same for people who look at the handle: it may not be known any more.
    fn known_location(child: NonNull<TaskHeader>) -> Option<&'static Location<'static>> {
        // SAFETY: the child is ours.
        let point = unsafe { HandleRendezvous::<K>::of(child) };
        let kept = point.location.into();
        let asks = kept.is_none() && Self::is_home(child) && !point.meeting.is_done();
        // SAFETY: it has not delivered, and we are at its home.
        if asks { Some(unsafe { Self::location(child) }) } else { kept }
    }

    /// Where the child was started.
    ///
    /// # Safety
    /// The child is ours, and has not delivered; and if the handle stays at home we are there, or others are kept out.
    unsafe fn location(child: NonNull<TaskHeader>) -> &'static Location<'static> {
        // SAFETY: the caller's: what it has kept, or, as it has not left, what its header says.
        unsafe {
            let kept = HandleRendezvous::<K>::of(child).location.into();
            kept.unwrap_or_else(|| child.as_ref().location())
        }
    }

    /// Whether the outcome is there; if not, the waker is in its place.
    fn look(&mut self, child: NonNull<TaskHeader>, waker: &Waker) -> Peek {
        // SAFETY: we have a reference of the child, which has a handle: us.
        let point = unsafe { HandleRendezvous::<K>::of(child) };
        let meeting = &point.meeting;
        let identity = WakerMark::of(waker);
        if meeting.peek() == Peek::Done || self.placed == Some(identity) {
            return meeting.peek();
        }
        match self.placed {
            Some(_) => {
                // Before: the child waits while we change it, and the waker may be anybody's.
                let waker = waker.clone();
                let look = meeting.change();
                if look == Peek::Done {
                    return look;
                }
                // SAFETY: we are changing it: then it is ours.
                let before = unsafe { (*point.waker.get()).replace(waker) };
                meeting.changed();
                self.placed = Some(identity);
                drop(before);
            }
            None => {
                // SAFETY: nobody waits yet: then it is ours.
                unsafe { *point.waker.get() = Some(waker.clone()) };
                let wait = if K::AT_HOME { meeting.wait_here() } else { meeting.wait() };
                if wait == Wait::Done {
                    return Peek::Done;
                }
            }
        }
        self.placed = Some(identity);
        Peek::NotYet
    }

    /// Takes the outcome, and lets the child go.
    ///
    /// # Safety
    /// The child is ours, and the meeting says that the outcome is there; if the handle stays at home we are there, or others are
    /// kept out.
    #[inline]
    unsafe fn take(&mut self, child: NonNull<TaskHeader>) -> Outcome<T> {
        self.child = None;
        // SAFETY: the caller's; as we have no child any more, it is done once.
        unsafe {
            let outcome = self.outcome.read();
            Self::let_go(child);
            outcome
        }
    }

    /// # Safety
    /// The child is ours, and is not any more.
    #[inline]
    unsafe fn let_go(child: NonNull<TaskHeader>) {
        // SAFETY: the caller's.
        unsafe {
            if K::AT_HOME {
                drop_handle(child);
            } else {
                drop_reference(child);
            }
        }
    }

    /// The way of all polls but one that finds the outcome at home.
    #[inline(never)]
    fn poll_slowly(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again, beside something that must not be dropped yet.
                frame.set_stopped();
                return Poll::Pending;
            }
            let child = self.child.expect("polled after it has ended");
            let _others_out = Self::keep_others_out(child);
            if self.look(child, cx.waker()) == Peek::NotYet {
                if !frame.honour_stop() {
                    // SAFETY: the child has not delivered; and if the handle stays at home, nobody else is there.
                    frame.waits_at(unsafe { Self::location(child) });
                    self.watch.watch(frame, cx);
                }
                return Poll::Pending;
            }
            // SAFETY: the meeting has just said so.
            match unsafe { self.take(child) } {
                Outcome::Value(value) => Poll::Ready(value),
                other => self.end_otherwise(other),
            }
        })
    }

    /// There is no value.
    #[cold]
    #[inline(never)]
    fn end_otherwise(&mut self, outcome: Outcome<T>) -> Poll<T> {
        match outcome {
            Outcome::Value(value) => return Poll::Ready(value),
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
            Outcome::Stopped => {}
        }
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            self.stopped = true;
            frame.set_stopped();
        });
        Poll::Pending
    }

    /// Nobody wants the outcome any more.
    #[cold]
    #[inline(never)]
    fn abandon(&mut self, child: NonNull<TaskHeader>) {
        let _others_out = Self::keep_others_out(child);
        // SAFETY: we have the child, and give it up last; others are kept out. The meeting says whether the outcome is there and
        // ours. The hook has told of a panic in it.
        unsafe {
            // Before it is abandoned: then it still has its outcome to give to us.
            Self::ask_stop(child);
            let meeting = &HandleRendezvous::<K>::of(child).meeting;
            let abandoned = if K::AT_HOME { meeting.abandon_here() } else { meeting.abandon() };
            if abandoned == Abandon::Free {
                let _ = Panic::catch(|| self.outcome.drop_in_place());
            }
            Self::let_go(child);
        }
    }
}

impl<T> Handle<T, Anywhere> {
    /// Blocks this thread until the child has ended.
    pub(super) fn wait(mut self) -> Outcome<T> {
        let child = self.child.expect("it was not awaited before");
        let waker = thread_waker();
        while self.look(child, &waker) == Peek::NotYet {
            // The child may be refused just now, further up on our stack.
            if !Runnable::stop_deferred() {
                thread::park();
            }
        }
        // SAFETY: the meeting says so.
        unsafe { self.take(child) }
    }
}

impl<T, K: Kind> Future for Handle<T, K> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(child) = self.child
            && Self::is_home(child)
            // SAFETY: we have a reference of the child, which has a handle: us.
            && unsafe { HandleRendezvous::<K>::of(child) }.meeting.is_done()
        {
            // SAFETY: as above.
            return match unsafe { self.take(child) } {
                Outcome::Value(value) => Poll::Ready(value),
                other => self.end_otherwise(other),
            };
        }
        self.poll_slowly(cx)
    }
}

impl<T, K: Kind> Drop for Handle<T, K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(child) = self.child {
            self.abandon(child);
        }
    }
}

impl<T, K: Kind> fmt::Debug for Handle<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("taken", &self.child.is_none())
            .field("started at", &self.child.and_then(Self::known_location))
            .finish_non_exhaustive()
    }
}
