//! A first-in first-out queue of runnables, linked through the work itself: it never allocates.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::{self, NonNull};

use super::{Header, Runnable};

/// A queue of [`Runnable`]s for one owner at a time. Dropping it stops all that is still in it.
pub struct RunQueue {
    head: *mut Header,
    /// The last one; meaningless while `head` is null.
    tail: *mut Header,
    len: usize,
}

// SAFETY: the queue owns its runnables, and those are `Send`.
unsafe impl Send for RunQueue {}
// SAFETY: a shared reference reads only `head` and `len`.
unsafe impl Sync for RunQueue {}

impl RunQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { head: ptr::null_mut(), tail: ptr::null_mut(), len: 0 }
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// How many it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, runnable: Runnable) {
        let header = runnable.into_raw();
        // SAFETY: we hold the obligation, so the link is ours.
        unsafe { Runnable::set_link(header, ptr::null_mut()) };
        if self.head.is_null() {
            self.head = header.as_ptr();
        } else {
            // SAFETY: `tail` is in the queue, whose obligations we hold.
            unsafe { Runnable::set_link(NonNull::new_unchecked(self.tail), header.as_ptr()) };
        }
        self.tail = header.as_ptr();
        self.len += 1;
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<Runnable> {
        let header = NonNull::new(self.head)?;
        // SAFETY: it is in the queue, whose obligations we hold; taking it out, we pass the obligation on.
        unsafe {
            self.head = Runnable::link(header);
            self.len -= 1;
            Some(Runnable::from_raw(header))
        }
    }

    /// Takes the one behind so many others; the first, if there are not as many. Takes as long as it has to go.
    pub fn take(&mut self, behind: usize) -> Option<Runnable> {
        if behind == 0 || behind >= self.len {
            return self.pop();
        }
        let mut before = NonNull::new(self.head)?;
        // SAFETY: all of these are in the queue, whose obligations we hold, and there are more than `behind`; taking one
        // out, we pass its obligation on.
        unsafe {
            for _ in 1..behind {
                before = NonNull::new_unchecked(Runnable::link(before));
            }
            let taken = NonNull::new_unchecked(Runnable::link(before));
            Runnable::set_link(before, Runnable::link(taken));
            if self.tail == taken.as_ptr() {
                self.tail = before.as_ptr();
            }
            self.len -= 1;
            Some(Runnable::from_raw(taken))
        }
    }

    /// Moves everything of `other` to the end of this queue, in order, in constant time.
    pub fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        if self.head.is_null() {
            self.head = other.head;
        } else {
            // SAFETY: `tail` is in the queue, whose obligations we hold.
            unsafe { Runnable::set_link(NonNull::new_unchecked(self.tail), other.head) };
        }
        self.tail = other.tail;
        self.len += other.len;
        other.head = ptr::null_mut();
        other.len = 0;
    }

    /// A queue from a chain that was linked newest first, as a lock-free stack yields it; the queue has the oldest first.
    ///
    /// # Safety
    /// Every header of the chain came from `Runnable::into_raw`, and the obligations pass to the queue.
    #[inline]
    pub unsafe fn from_newest_first(mut chain: *mut Header) -> Self {
        let mut queue = Self { head: ptr::null_mut(), tail: chain, len: 0 };
        while let Some(header) = NonNull::new(chain) {
            // SAFETY: the caller passed us the obligation, so the link is ours.
            unsafe {
                chain = Runnable::link(header);
                Runnable::set_link(header, queue.head);
            }
            queue.head = header.as_ptr();
            queue.len += 1;
        }
        queue
    }
}

impl Default for RunQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        self.stop_all();
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue").field("len", &self.len).finish()
    }
}
