//! A first-in, first-out queue of runnables that is linked through the work itself. It never allocates.
//!
//! 1. The queue holds the runnable, as its raw header, of everything in it. So it owns their links.
//! 2. The links from `head` on lead through `len` headers to `tail`.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::{self, NonNull};

use super::{Header, Runnable};

/// A queue of [`Runnable`]s for one owner at a time. Dropping it stops all work that is still in it.
pub struct RunQueue {
    head: *mut Header,
    /// The last header. Meaningless while `head` is null.
    tail: *mut Header,
    len: usize,
}

// SAFETY: rule 1: the queue owns its runnables, and those are `Send`.
unsafe impl Send for RunQueue {}
// SAFETY: a shared reference reads only `head` and `len`, and changes nothing.
unsafe impl Sync for RunQueue {}

impl RunQueue {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { head: ptr::null_mut(), tail: ptr::null_mut(), len: 0 }
    }

    /// Returns true if it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Returns the number of runnables in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a runnable at the end.
    #[inline]
    pub fn push(&mut self, runnable: Runnable) {
        let header = runnable.into_raw();
        // SAFETY: `into_raw` has given us the runnable, and with it the link.
        unsafe { Runnable::set_link(header, ptr::null_mut()) };
        if self.head.is_null() {
            self.head = header.as_ptr();
        } else {
            // SAFETY: rules 1 and 2: the queue is not empty, so `tail` is in it and its link is ours.
            unsafe { Runnable::set_link(NonNull::new_unchecked(self.tail), header.as_ptr()) };
        }
        self.tail = header.as_ptr();
        self.len += 1;
    }

    /// Takes the first runnable.
    #[inline]
    pub fn pop(&mut self) -> Option<Runnable> {
        let header = NonNull::new(self.head)?;
        // SAFETY: rule 1: `header` is in the queue. It is taken out, so that its runnable is made once.
        unsafe {
            self.head = Runnable::link(header);
            self.len -= 1;
            Some(Runnable::from_raw(header))
        }
    }

    /// Takes the runnable at index `behind`, or the first one if there are not as many. The cost is linear in
    /// `behind`.
    pub fn take(&mut self, behind: usize) -> Option<Runnable> {
        if behind == 0 || behind >= self.len {
            return self.pop();
        }
        let mut before = NonNull::new(self.head)?;
        // SAFETY: rules 1 and 2: there are more than `behind` headers, so none of the links here is null.
        // `taken` is unlinked, so that its runnable is made once.
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

    /// Moves all runnables of `other` to the end of this queue, in order and in constant time.
    pub fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        if self.head.is_null() {
            self.head = other.head;
        } else {
            // SAFETY: rules 1 and 2: the queue is not empty, so `tail` is in it and its link is ours.
            unsafe { Runnable::set_link(NonNull::new_unchecked(self.tail), other.head) };
        }
        self.tail = other.tail;
        self.len += other.len;
        other.head = ptr::null_mut();
        other.len = 0;
    }

    /// Creates a queue from a chain that is linked newest first, as a lock-free stack yields it. The queue
    /// has the oldest first.
    ///
    /// # Safety
    /// Every header of the chain came from `Runnable::into_raw`, and the queue takes over their runnables.
    #[inline]
    pub unsafe fn from_newest_first(mut chain: *mut Header) -> Self {
        let mut queue = Self { head: ptr::null_mut(), tail: chain, len: 0 };
        while let Some(header) = NonNull::new(chain) {
            // SAFETY: the caller has passed the runnable of `header` to us, and with it the link.
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
