//! A frame that is kept from poll to poll, beside its owner. What stays the same is written once, and what runs inside finds the
//! owner again by its number. For what is polled once for each value, a generator: there, what a poll costs is what it writes.
//!
//! 1. A kept frame is the first field of its owner, and both stay where they are from [`settle`](KeptFrame::settle) on. They are
//!    changed only through cells.
//! 2. What is copied from the frame around, and `around` itself, are of the poll that runs. Nobody looks at them in between.
//! 3. `keeps` is set in frames whose owner has settled one, and only there.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::mem::{MaybeUninit, transmute};
use core::ptr::{self, NonNull};

// Not loom's: it takes no part in anything but that numbers differ.
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Frame, FrameOwner, OfTask};
use crate::sync::UnsafeCell;
use crate::this_thread::ThisThread;

/// See the head of this file.
pub struct KeptFrame {
    number: u64,
    frame: UnsafeCell<MaybeUninit<Frame<'static>>>,
    around: Cell<*const Frame<'static>>,
}

// SAFETY: rule 2: between polls it is a number, and addresses that nobody follows.
unsafe impl Send for KeptFrame {}

/// An owner that keeps its frame.
///
/// # Safety
/// It is `repr(C)`, and its first field is a [`KeptFrame`].
pub unsafe trait KeepsFrame: FrameOwner {
    /// The bit of its frame: see [`Frame::inside`].
    fn stopped(&self) -> &Cell<bool>;
}

/// Puts the frame around back into the window, also when the body panics.
struct Left<'a>(&'a KeptFrame);

impl Drop for Left<'_> {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.window.set(self.0.around.get().cast()));
    }
}

impl KeptFrame {
    /// One with a number that there was not before.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let frame = UnsafeCell::new(MaybeUninit::uninit());
        Self { number, frame, around: Cell::new(ptr::null()) }
    }

    /// Its number, to be [found](KeptFrame::find) by.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Tells the frame of this owner where the owner is.
    ///
    /// # Safety
    /// The owner stays there until it is dropped, and there are no references to it till then but shared ones.
    pub unsafe fn settle<O: KeepsFrame>(owner: NonNull<O>) {
        // SAFETY: the caller's.
        let owner = unsafe { owner.as_ref() };
        // SAFETY: `KeepsFrame`: that is its first field.
        let kept = unsafe { &*ptr::from_ref(owner).cast::<Self>() };
        let frame = kept.frame.get().cast::<Frame<'static>>();
        // SAFETY: the caller's, for the owner: it is there for as long as anybody is inside. Nobody else is at the frame.
        unsafe {
            let stopped = owner.stopped();
            (&raw mut (*frame).stopped).write(transmute::<&Cell<bool>, &'static Cell<bool>>(stopped));
            (&raw mut (*frame).owner)
                .write(transmute::<&dyn FrameOwner, &'static (dyn FrameOwner + 'static)>(owner));
            (&raw mut (*frame).keeps).write(Cell::new(true));
            (&raw mut (*frame).asked).write(false);
            (&raw mut (*frame).held).write(Cell::new(false));
        }
    }

    /// Runs `f` with this frame in the window, inside of `outer`; `asked` as for [`Frame::inside`].
    ///
    /// # Safety
    /// It has been settled, nothing runs inside yet, and `outer` is the nearest frame.
    #[inline]
    pub unsafe fn within<R>(&self, outer: &Frame<'_>, asked: bool, f: impl FnOnce() -> R) -> R {
        let frame = self.frame.get().cast::<Frame<'static>>();
        // SAFETY: rule 2: what is written is borrowed until this returns, as `outer` is, and nobody looks at it later. Nothing
        // runs inside, so nobody looks at it now.
        unsafe {
            (&raw mut (*frame).task).write(transmute::<OfTask<'_>, OfTask<'static>>(outer.task));
            (&raw mut (*frame).asked).write(asked);
            (&raw mut (*frame).held).write(Cell::new(false));
        }
        self.around.set(ptr::from_ref(outer).cast());
        ThisThread::with(|thread| thread.window.set(frame.cast()));
        let _left = Left(self);
        f()
    }

    /// The frame around this one.
    ///
    /// # Safety
    /// Something runs inside.
    #[inline]
    pub unsafe fn around(&self) -> &Frame<'_> {
        // SAFETY: the caller's: `within` runs, for which it is borrowed.
        unsafe { &*self.around.get() }
    }

    /// Whether somebody inside must not be dropped yet, as of the last poll.
    ///
    /// # Safety
    /// It has been settled, and nothing runs inside.
    pub unsafe fn is_held(&self) -> bool {
        let frame = self.frame.get().cast::<Frame<'static>>();
        // SAFETY: the caller's: `settle` has written it, and who runs inside would write it.
        unsafe { (*frame).held.get() }
    }

    /// The kept frame of this number, if that is the nearest to what runs in `frame`: there it is as long as `frame`. Its owner
    /// begins where it does.
    #[inline]
    pub fn nearest(frame: &Frame<'_>, number: u64) -> Option<NonNull<Self>> {
        let kept = NonNull::from(frame.owner).cast::<Self>();
        // SAFETY: rules 1 and 3: the owner begins with it.
        (frame.keeps.get() && unsafe { kept.as_ref() }.number == number).then_some(kept)
    }

    /// The same for one that is further out.
    pub fn find(frame: &Frame<'_>, number: u64) -> Option<NonNull<Self>> {
        let mut frame = frame;
        loop {
            if let Some(kept) = Self::nearest(frame, number) {
                return Some(kept);
            }
            frame = frame.owner.around()?;
        }
    }
}

impl Default for KeptFrame {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KeptFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptFrame").field("number", &self.number).finish_non_exhaustive()
    }
}
