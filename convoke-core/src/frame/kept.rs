//! A frame that is stored beside its owner from poll to poll. The fields that do not change are written once,
//! and code inside finds the owner by its number. For a generator, which is polled once for each value: there
//! the cost of a poll is what it writes.
//!
//! 1. A kept frame is the first field of its owner. Neither of them moves from [`settle`](KeptFrame::settle)
//!    on, and they are changed only through cells.
//! 2. `task` and `flags` of the frame, and `outer`, belong to the poll that runs. Between
//!    polls nothing dereferences their pointers.
//! 3. `KEPT` is set only in frames whose owner has called `settle`.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::mem::{MaybeUninit, transmute};
use core::ptr::{self, NonNull};

// Not loom's: it only makes numbers differ, and orders nothing.
use std::sync::atomic::{AtomicU64, Ordering};

use super::flags::{HELD, KEPT, SHELTERED, asked_flag};
use super::{Frame, FrameOwner, TaskPart};
use crate::sync::UnsafeCell;
use crate::this_thread::ThisThread;

/// The flags of a frame that is kept. A stop that is meant for `next` alone does not reach the body.
const FLAGS: u8 = KEPT | SHELTERED;

/// A frame that is stored as the first field of its owner, for owners that are polled very often.
pub struct KeptFrame {
    number: u64,
    frame: UnsafeCell<MaybeUninit<Frame<'static>>>,
    outer: Cell<*const Frame<'static>>,
}

// SAFETY: rule 2: between polls it is a number and addresses that nothing dereferences.
unsafe impl Send for KeptFrame {}

/// An owner that stores its frame.
///
/// # Safety
/// It is `repr(C)`, and its first field is a [`KeptFrame`].
pub unsafe trait KeepsFrame: FrameOwner {
    /// Returns the *stopped* flag of its frame: see [`Frame::inside`].
    fn stopped(&self) -> &Cell<bool>;
}

/// Restores the outer frame as the current one, also if the body panics.
struct RestoreOuter<'a>(&'a KeptFrame);

impl Drop for RestoreOuter<'_> {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.current_frame.set(self.0.outer.get().cast()));
    }
}

impl KeptFrame {
    /// Creates a frame with a new number.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let frame = UnsafeCell::new(MaybeUninit::uninit());
        Self { number, frame, outer: Cell::new(ptr::null()) }
    }

    /// Returns its number, by which code inside can [find](KeptFrame::find) it.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Writes the fields of the frame that do not change, with the address of the owner.
    ///
    /// # Safety
    /// The owner does not move until it is dropped, and until then there are only shared references to it.
    pub unsafe fn settle<O: KeepsFrame>(owner: NonNull<O>) {
        // SAFETY: the contract of this function: the owner exists, and there are only shared references to it. The
        // contract of `KeepsFrame`: a `KeptFrame` is its first field. Rule 1: the owner stays there until it is
        // dropped, and so until the frame is, which is a part of it: the references are valid for as long as they
        // can be used. Nothing runs inside yet, so nothing else accesses the frame.
        unsafe {
            let owner = owner.as_ref();
            let kept = &*ptr::from_ref(owner).cast::<Self>();
            let frame = kept.frame.get().cast::<Frame<'static>>();
            let stopped = owner.stopped();
            (&raw mut (*frame).stopped).write(transmute::<&Cell<bool>, &'static Cell<bool>>(stopped));
            (&raw mut (*frame).owner)
                .write(transmute::<&dyn FrameOwner, &'static (dyn FrameOwner + 'static)>(owner));
            (&raw mut (*frame).flags).write(Cell::new(FLAGS));
            (&raw mut (*frame).cause).write(Cell::new(None));
        }
    }

    /// Runs `f` with this frame as the current one, inside of `outer`. `asked` is as for [`Frame::inside`].
    ///
    /// # Safety
    /// The frame has been settled, nothing runs inside yet, and `outer` is the current frame.
    #[inline]
    pub unsafe fn within<R>(&self, outer: &Frame<'_>, asked: bool, f: impl FnOnce() -> R) -> R {
        let frame = self.frame.get().cast::<Frame<'static>>();
        // SAFETY: rule 2: `outer` is borrowed until this returns, and what is written is not used afterwards.
        // Nothing runs inside, by the contract of this function, so nothing else accesses the frame now.
        unsafe {
            (&raw mut (*frame).task).write(transmute::<TaskPart<'_>, TaskPart<'static>>(outer.task));
            (&raw mut (*frame).flags).write(Cell::new(FLAGS | asked_flag(asked)));
        }
        self.outer.set(ptr::from_ref(outer).cast());
        ThisThread::replace_current_frame(frame.cast());
        let _restore = RestoreOuter(self);
        f()
    }

    /// Returns the frame around this one.
    ///
    /// # Safety
    /// Called from code that runs inside.
    #[inline]
    pub unsafe fn around(&self) -> &Frame<'_> {
        // SAFETY: rule 2: the caller runs inside of `within`, which borrows `outer`.
        unsafe { &*self.outer.get() }
    }

    /// Returns true if a future inside must not be dropped yet, as of the last poll.
    ///
    /// # Safety
    /// It has been settled, and nothing runs inside.
    pub unsafe fn is_held(&self) -> bool {
        let frame = self.frame.get().cast::<Frame<'static>>();
        // SAFETY: `settle` has written the flags, and nothing runs inside that could write them now: the contract.
        unsafe { (*frame).flags.get() & HELD != 0 }
    }

    /// Returns the kept frame of this number if it is that of the owner of `frame`. It exists for as long as
    /// `frame`. Its owner has the same address.
    #[inline]
    pub fn nearest(frame: &Frame<'_>, number: u64) -> Option<NonNull<Self>> {
        let kept = NonNull::from(frame.owner).cast::<Self>();
        // SAFETY: rule 3: the owner has settled a frame, which rule 1 says is its first field.
        (frame.has(KEPT) && unsafe { kept.as_ref() }.number == number).then_some(kept)
    }

    /// Returns the kept frame of this number that is nearest to `frame`, in it or around it.
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
