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

/// Handle of a child that returns a value: awaits that value. Returned by
/// [`Scope::spawn_future`](super::Scope::spawn_future).
///
/// - *Completes with* the value of the child. Stopped, if the child was stopped, or if the awaiting task is
///   asked to stop.
/// - *If dropped*, the child is asked to stop. The scope still waits for it.
/// - *Runs on*: the child, on the executor that it was started on. Awaiting the handle runs nothing.
/// - *Panics* with the panic of the child, and its name; and outside a task, unless the child has already
///   ended.
///
/// A task that asks a child to stop and then awaits it is stopped with it. To go on instead, catch the stop:
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
#[must_use = "dropping the handle stops the child, and so does `let _ =`; await it, or start the child with `spawn`"]
pub struct Handle<T, K: Kind = Anywhere> {
    /// The child, until the outcome was taken and the reference released.
    child: Option<NonNull<TaskHeader>>,
    outcome: NonNull<Outcome<T>>,
    /// Identity of the waker that is stored in the child. Only compared, to see if another waker comes.
    stored: Option<WakerMark>,
    watch: StopWatch,
    /// The child was stopped, and the awaiting task with it.
    stopped: bool,
    _outcome: PhantomData<(Outcome<T>, K)>,
}

/// Kind of a [`Handle`]: it may go to any thread, or it stays on the thread of its child, which is cheaper.
pub trait Kind: sealed::Sealed {
    /// True if the handle stays on the owner thread of its child.
    #[doc(hidden)]
    const LOCAL: bool;

    /// The spawn site that the child stores for its handle.
    #[doc(hidden)]
    type Location: From<&'static Location<'static>> + Into<Option<&'static Location<'static>>> + Copy;
}

/// No stored spawn site: a local handle reads the header, on the one thread that could end the child meanwhile.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NoLocation;

impl From<&'static Location<'static>> for NoLocation {
    #[inline]
    fn from(_: &'static Location<'static>) -> Self {
        Self
    }
}

impl From<NoLocation> for Option<&'static Location<'static>> {
    fn from(_: NoLocation) -> Self {
        None
    }
}

/// Kind of a handle that may go to any thread.
#[derive(Debug)]
pub struct Anywhere(());

/// Kind of a handle that stays on the owner thread of its child.
#[derive(Debug)]
pub struct OnOwnerThread(PhantomData<*mut ()>);

impl Kind for Anywhere {
    const LOCAL: bool = false;
    type Location = &'static Location<'static>;
}

impl Kind for OnOwnerThread {
    const LOCAL: bool = true;
    type Location = NoLocation;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Anywhere {}
    impl Sealed for super::OnOwnerThread {}
}

// Rules of a handle:
//
// 1. While `child` is `Some`, the handle has a reference to it (`Anywhere`), or is the handle that the child
//    was made with (`OnOwnerThread`): the child's memory is alive.
// 2. Waker and outcome belong to the handle or to the child, as the rendezvous says.
// 3. An `OnOwnerThread` handle touches its child only on the owner thread, or while `keep_others_out`
//    excludes that thread.

// SAFETY: rules 1 and 2; the outcome goes from the child's thread to this one, and `T` is `Send`.
unsafe impl<T: Send> Send for Handle<T, Anywhere> {}
// SAFETY: `&Handle` only allows `request_stop` and `Debug`, which touch no `T`, and may run on any thread.
unsafe impl<T: Send> Sync for Handle<T, Anywhere> {}

impl<T, K: Kind> Unpin for Handle<T, K> {}

impl<T, K: Kind> Handle<T, K> {
    /// Creates the handle of a child, in which the outcome will be stored.
    ///
    /// # Safety
    /// The caller passes on a reference to the child; or, for an `OnOwnerThread` handle, the handle that the
    /// child was made with, on its owner thread. The pointer may be used for the whole child, not just its
    /// header.
    #[inline]
    pub(super) unsafe fn new(child: NonNull<TaskHeader>, outcome: NonNull<Outcome<T>>) -> Self {
        let (stored, watch) = (None, StopWatch::new());
        Self { child: Some(child), outcome, stored, watch, stopped: false, _outcome: PhantomData }
    }

    /// Asks the child to stop. The handle can still be awaited. The child sees the same reason as if the
    /// handle were dropped: [`StopReason::Abandoned`](convoke_core::StopReason::Abandoned).
    #[doc(alias = "abort")]
    pub fn request_stop(&self) {
        let Some(child) = self.child else { return };
        let _others_out = Self::keep_others_out(child);
        // SAFETY: rule 1, and rule 3: `keep_others_out` was called above.
        unsafe { Self::ask_stop(child) };
    }

    /// Asks the child to stop.
    ///
    /// # Safety
    /// Rules 1 and 3 hold for this child.
    unsafe fn ask_stop(child: NonNull<TaskHeader>) {
        // SAFETY: by rule 1 the child is alive; by rule 3 this thread may use the local variant for a local
        // handle.
        unsafe {
            if K::LOCAL {
                TaskHeader::ask_stop_at_home(child);
            } else {
                TaskHeader::ask_stop(child);
            }
        }
    }

    /// Returns true if this thread may touch the child without excluding others: the handle is not local, or
    /// this is the owner thread.
    #[inline]
    fn is_on_owner_thread(child: NonNull<TaskHeader>) -> bool {
        // SAFETY: rule 1: every caller passes the handle's child.
        !K::LOCAL || unsafe { child.as_ref() }.is_at_home()
    }

    /// Excludes other threads from the child's run queue, for a local handle that is used or dropped off its
    /// owner thread. That happens only while the queue is not run; then only a thread that closes the queue
    /// could touch the child.
    fn keep_others_out(child: NonNull<TaskHeader>) -> Option<impl Sized + use<T, K>> {
        // SAFETY: rule 1: every caller passes the handle's child.
        (!Self::is_on_owner_thread(child))
            .then(|| OwnerThread::keep_out(unsafe { child.as_ref() }.home_number()))
    }

    /// Returns the spawn site for `Debug`, or `None` if it is not known any more.
    fn known_location(child: NonNull<TaskHeader>) -> Option<&'static Location<'static>> {
        // SAFETY: rule 1: the caller passes the handle's child.
        let shared = unsafe { HandleRendezvous::<K>::of(child) };
        let stored = shared.location.into();
        let ask = stored.is_none() && Self::is_on_owner_thread(child) && !shared.rendezvous.is_done();
        // SAFETY: the rendezvous is not done, so the child has not delivered; and this is the owner thread:
        // rule 3.
        if ask { Some(unsafe { Self::location(child) }) } else { stored }
    }

    /// Returns the spawn site of the child.
    ///
    /// # Safety
    /// Rules 1 and 3 hold for this child, and it has not delivered its outcome.
    unsafe fn location(child: NonNull<TaskHeader>) -> &'static Location<'static> {
        // SAFETY: rule 1: the child is alive. Without a stored spawn site the handle is local; the child has
        // not delivered, so its header still has one.
        unsafe {
            let stored = HandleRendezvous::<K>::of(child).location.into();
            stored.unwrap_or_else(|| child.as_ref().location())
        }
    }

    /// Returns `Done` if the outcome is there. Otherwise stores the waker in the child.
    fn peek_or_wait(&mut self, child: NonNull<TaskHeader>, waker: &Waker) -> Peek {
        // SAFETY: rule 1: the child is alive, and has a handle of kind `K`: this one.
        let shared = unsafe { HandleRendezvous::<K>::of(child) };
        let rendezvous = &shared.rendezvous;
        let identity = WakerMark::of(waker);
        if rendezvous.peek() == Peek::Done || self.stored == Some(identity) {
            return rendezvous.peek();
        }
        match self.stored {
            Some(_) => {
                // Cloned before: the child waits during the change, and a clone may run foreign code.
                let waker = waker.clone();
                let peek = rendezvous.change();
                if peek == Peek::Done {
                    return peek;
                }
                // SAFETY: rule 2: `change` gave the waker to this thread, until `changed`.
                let before = unsafe { (*shared.waker.get()).replace(waker) };
                rendezvous.changed();
                self.stored = Some(identity);
                drop(before);
            }
            None => {
                // SAFETY: rule 2: before the first `wait` the waker belongs to the handle.
                unsafe { *shared.waker.get() = Some(waker.clone()) };
                let wait = if K::LOCAL { rendezvous.wait_here() } else { rendezvous.wait() };
                if wait == Wait::Done {
                    return Peek::Done;
                }
            }
        }
        self.stored = Some(identity);
        Peek::NotYet
    }

    /// Takes the outcome, and releases the child.
    ///
    /// # Safety
    /// Rules 1 and 3 hold for this child, and the rendezvous is done.
    #[inline]
    unsafe fn take(&mut self, child: NonNull<TaskHeader>) -> Outcome<T> {
        self.child = None;
        // SAFETY: rule 2: the rendezvous is done, so the outcome belongs to the handle. It is read once, and
        // the child released once: `self.child` is `None` from now on.
        unsafe {
            let outcome = self.outcome.read();
            Self::release(child);
            outcome
        }
    }

    /// Releases the child. Its memory may be freed when this returns.
    ///
    /// # Safety
    /// Rules 1 and 3 hold for this child, and the caller does not use it any more.
    #[inline]
    unsafe fn release(child: NonNull<TaskHeader>) {
        // SAFETY: rule 1: the handle has the reference, or the handle mark, that is released here; the caller
        // releases once.
        unsafe {
            if K::LOCAL {
                drop_handle(child);
            } else {
                drop_reference(child);
            }
        }
    }

    /// Polls the handle: the path of all polls except for one that finds the outcome on the owner thread.
    #[inline(never)]
    fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("the handle of a child") };
            if self.stopped {
                // Polled again after the stop, by a combinator that still has to finish another branch.
                frame.set_stopped();
                return Poll::Pending;
            }
            let child = self.child.expect("`Handle` polled after it returned its value");
            let _others_out = Self::keep_others_out(child);
            if self.peek_or_wait(child, cx.waker()) == Peek::NotYet {
                if !frame.honour_stop() {
                    // SAFETY: rule 1; rule 3 by `keep_others_out` above. `NotYet`: the child has not delivered.
                    frame.waits_at(unsafe { Self::location(child) });
                    self.watch.watch(frame, cx);
                }
                return Poll::Pending;
            }
            // SAFETY: rule 1; rule 3 by `keep_others_out` above. `peek_or_wait` returned `Done`.
            match unsafe { self.take(child) } {
                Outcome::Value(value) => Poll::Ready(value),
                other => self.end_otherwise(other),
            }
        })
    }

    /// Ends the poll for an outcome that is not a value.
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

    /// Asks the child to stop, drops an outcome that is there, and releases the child.
    #[cold]
    #[inline(never)]
    fn abandon(&mut self, child: NonNull<TaskHeader>) {
        let _others_out = Self::keep_others_out(child);
        // SAFETY: rule 1: the child is released last. Rule 3 by `keep_others_out` above. Rule 2: after `Free`
        // the outcome belongs to the handle. The panic hook has reported a panic in it.
        unsafe {
            // Before `abandon`: until then the child keeps its memory for the handle.
            Self::ask_stop(child);
            let rendezvous = &HandleRendezvous::<K>::of(child).rendezvous;
            let abandoned = if K::LOCAL { rendezvous.abandon_here() } else { rendezvous.abandon() };
            if abandoned == Abandon::Free {
                let _ = Panic::catch(|| self.outcome.drop_in_place());
            }
            Self::release(child);
        }
    }
}

impl<T> Handle<T, Anywhere> {
    /// Blocks this thread until the child has ended, and returns its outcome.
    pub(super) fn wait(mut self) -> Outcome<T> {
        let child = self.child.expect("a handle that is waited for was not awaited before");
        let waker = thread_waker();
        while self.peek_or_wait(child, &waker) == Peek::NotYet {
            // An executor below us on this stack may have refused the child; then this thread must end it.
            if !Runnable::stop_deferred() {
                thread::park();
            }
        }
        // SAFETY: rule 1; the handle is not local, so rule 3 asks for nothing. `peek_or_wait` returned `Done`.
        unsafe { self.take(child) }
    }
}

impl<T, K: Kind> Future for Handle<T, K> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(child) = self.child
            && Self::is_on_owner_thread(child)
            // SAFETY: rule 1: the child is alive, and has a handle of kind `K`: this one.
            && unsafe { HandleRendezvous::<K>::of(child) }.rendezvous.is_done()
        {
            // SAFETY: rule 1; rule 3: this is the owner thread, if the handle is local. The rendezvous is done.
            return match unsafe { self.take(child) } {
                Outcome::Value(value) => Poll::Ready(value),
                other => self.end_otherwise(other),
            };
        }
        self.poll_slow(cx)
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
