//! A first-in, first-out queue of runnables that is linked through the work itself. It never allocates.
//!
//! 1. The queue holds the runnable, as its [`Queued`] header, of everything in it. So the headers exist, and
//!    their links belong to the queue.
//! 2. The links from `head` on lead through `len` headers to `tail`.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::{self, NonNull};

use super::{Header, Runnable};
use crate::sync::UnsafeCell;

/// A queue of [`Runnable`]s for one owner at a time. Dropping it stops all work that is still in it.
pub struct RunQueue {
    head: Option<Queued>,
    /// The last header. Dangling while `head` is `None`.
    tail: Queued,
    len: usize,
}

/// The header of a runnable that a queue, or a chain on its way into one, holds: rule 1.
#[derive(Clone, Copy, PartialEq)]
struct Queued(NonNull<Header>);

impl Queued {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: rule 1: the queue holds the runnable, and a header exists while there is a runnable for it.
        // `tail` is used only while `head` says that it is not dangling (rule 2).
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn next(self) -> Option<Self> {
        NonNull::new(self.header().link()).map(Self)
    }

    #[inline]
    fn set_next(self, next: Option<Self>) {
        self.header().set_link(next.map_or(ptr::null_mut(), |next| next.0.as_ptr()));
    }
}

// SAFETY: rule 1: the queue owns its runnables, and those are `Send`.
unsafe impl Send for RunQueue {}
// SAFETY: a shared reference reads only `head` and `len`, and changes nothing.
unsafe impl Sync for RunQueue {}

impl RunQueue {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { head: None, tail: Queued(NonNull::dangling()), len: 0 }
    }

    /// Returns true if it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Returns the number of runnables in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a runnable at the end.
    #[inline]
    pub fn push(&mut self, runnable: Runnable) {
        let added = Queued(runnable.into_raw());
        added.set_next(None);
        self.link_behind(added);
        self.tail = added;
        self.len += 1;
    }

    /// Links a chain behind the last header.
    #[inline]
    fn link_behind(&mut self, chain: Queued) {
        match self.head {
            None => self.head = Some(chain),
            Some(_) => self.tail.set_next(Some(chain)),
        }
    }

    /// Takes the first runnable.
    #[inline]
    pub fn pop(&mut self) -> Option<Runnable> {
        let first = self.head?;
        self.head = first.next();
        Some(self.unlinked(first))
    }

    /// Takes the runnable at index `behind`, or the first one if there are not as many. The cost is linear in
    /// `behind`.
    pub fn take(&mut self, behind: usize) -> Option<Runnable> {
        if behind == 0 || behind >= self.len {
            return self.pop();
        }
        let mut before = self.head?;
        for _ in 1..behind {
            before = before.next()?;
        }
        let taken = before.next()?;
        before.set_next(taken.next());
        if self.tail == taken {
            self.tail = before;
        }
        Some(self.unlinked(taken))
    }

    /// Returns the runnable of a header that was unlinked just now.
    #[inline]
    fn unlinked(&mut self, taken: Queued) -> Runnable {
        self.len -= 1;
        // SAFETY: rule 1: the queue held the runnable, and gives it up: `pop` and `take` have unlinked the
        // header, so that this is done once.
        unsafe { Runnable::from_raw(taken.0) }
    }

    /// Moves all runnables of `other` to the end of this queue, in order and in constant time.
    pub fn append(&mut self, other: &mut Self) {
        let Some(chain) = other.head.take() else { return };
        self.link_behind(chain);
        self.tail = other.tail;
        self.len += core::mem::take(&mut other.len);
    }

    /// Creates a queue from a chain that is linked newest first, as a lock-free stack yields it. The queue
    /// has the oldest first.
    ///
    /// # Safety
    /// Every header of the chain came from `Runnable::into_raw`, and the queue takes over their runnables.
    #[inline]
    pub unsafe fn from_newest_first(chain: *mut Header) -> Self {
        let mut queue = Self::new();
        let mut next = NonNull::new(chain).map(Queued);
        if let Some(newest) = next {
            queue.tail = newest;
        }
        while let Some(queued) = next {
            next = queued.next();
            queued.set_next(queue.head);
            queue.head = Some(queued);
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
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.stop_all();
        }
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue").field("len", &self.len).finish()
    }
}

/// A [`RunQueue`] that code of one thread shares: a cell. No work runs inside of its methods.
///
/// 1. It is not `Sync`, so one thread uses it.
/// 2. `with` is private, and is called only with functions of `RunQueue` that run no code of the program. So
///    there is never a second reference to the queue.
#[derive(Default)]
pub struct LocalRunQueue(UnsafeCell<RunQueue>);

impl LocalRunQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self(UnsafeCell::new(RunQueue::new()))
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut RunQueue) -> R) -> R {
        // SAFETY: rules 1 and 2: neither another thread nor `f` comes here while the reference exists.
        f(unsafe { &mut *self.0.get() })
    }

    /// Returns true if it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.with(|queue| queue.is_empty())
    }

    /// Returns the number of runnables in it.
    pub fn len(&self) -> usize {
        self.with(|queue| queue.len())
    }

    /// Adds a runnable at the end.
    #[inline]
    pub fn push(&self, runnable: Runnable) {
        self.with(|queue| queue.push(runnable));
    }

    /// Takes the first runnable.
    #[inline]
    pub fn pop(&self) -> Option<Runnable> {
        self.with(RunQueue::pop)
    }

    /// Takes the runnable at index `behind`, or the first one if there are not as many.
    pub fn take(&self, behind: usize) -> Option<Runnable> {
        self.with(|queue| queue.take(behind))
    }

    /// Takes all runnables.
    pub fn take_all(&self) -> RunQueue {
        self.with(core::mem::take)
    }

    /// Moves all runnables of `other` to the end of this queue.
    pub fn append(&self, mut other: RunQueue) {
        self.with(|queue| queue.append(&mut other));
    }
}

impl fmt::Debug for LocalRunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRunQueue").field("len", &self.len()).finish()
    }
}
