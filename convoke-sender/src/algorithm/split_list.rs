//! The list of consumers that wait for the work of a `split`. It is linked through their operations, so that
//! one of many can leave without a search.
//!
//! 1. A waiter is in at most one list. Only that list touches its links, and the list is guarded by a lock.
//! 2. A waiter is alive, and not moved, from `push` until it is out of the list again.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::UnsafeCell;

/// A waiting consumer: the function that ends its wait, and its neighbours in the list.
pub(super) struct Waiter<S: Sender> {
    end: unsafe fn(NonNull<Self>, OutcomeOf<S>),
    links: UnsafeCell<Links<S>>,
}

struct Links<S: Sender> {
    listed: bool,
    next: Option<NonNull<Waiter<S>>>,
    previous: Option<NonNull<Waiter<S>>>,
}

impl<S: Sender> Waiter<S> {
    /// Creates a waiter that is in no list. `end` is called with its address.
    pub(super) fn new(end: unsafe fn(NonNull<Self>, OutcomeOf<S>)) -> Self {
        let links = Links { listed: false, next: None, previous: None };
        Self { end, links: UnsafeCell::new(links) }
    }

    /// Ends the wait.
    ///
    /// # Safety
    /// Called once, by the thread that removed the waiter from the list. The consumer may be freed by it.
    pub(super) unsafe fn end(this: NonNull<Self>, outcome: OutcomeOf<S>) {
        // SAFETY: the consumer is alive until its wait has ended, and the caller is the one that ends it.
        unsafe { (this.as_ref().end)(this, outcome) };
    }
}

/// The waiters, in the order in which they arrived.
pub(super) struct WaiterList<S: Sender> {
    first: Option<NonNull<Waiter<S>>>,
    last: Option<NonNull<Waiter<S>>>,
    count: usize,
    /// The number of waiters touched, for a test that it does not grow with the square of their number.
    #[cfg(test)]
    pub(super) steps: usize,
}

// SAFETY: rule 1: the list is guarded by a lock, and the waiters are parts of operations, which are `Send`.
unsafe impl<S: Sender> Send for WaiterList<S> {}

impl<S: Sender> WaiterList<S> {
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            last: None,
            count: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Returns the number of waiters.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Appends a waiter.
    ///
    /// # Safety
    /// Rule 2, from now on; the waiter is in no list.
    pub(super) unsafe fn push(&mut self, waiter: NonNull<Waiter<S>>) {
        // SAFETY: rule 1: `&mut self` holds the lock. Rule 2: the waiter and the last one are alive.
        unsafe {
            self.links(waiter).write(Links { listed: true, next: None, previous: self.last });
            match self.last {
                Some(last) => (*self.links(last)).next = Some(waiter),
                None => self.first = Some(waiter),
            }
        }
        self.last = Some(waiter);
        self.count += 1;
    }

    /// Removes a waiter. Returns false if it is not in the list.
    ///
    /// # Safety
    /// The waiter is alive, and in this list or in none.
    pub(super) unsafe fn remove(&mut self, waiter: NonNull<Waiter<S>>) -> bool {
        // SAFETY: rule 1: `&mut self` holds the lock. Rule 2: the neighbours are alive.
        unsafe {
            let empty = Links { listed: false, next: None, previous: None };
            let Links { listed, next, previous } = self.links(waiter).replace(empty);
            if !listed {
                return false;
            }
            match previous {
                Some(previous) => (*self.links(previous)).next = next,
                None => self.first = next,
            }
            match next {
                Some(next) => (*self.links(next)).previous = previous,
                None => self.last = previous,
            }
        }
        self.count -= 1;
        true
    }

    /// Removes and returns the first waiter.
    pub(super) fn pop(&mut self) -> Option<NonNull<Waiter<S>>> {
        let first = self.first?;
        // SAFETY: rule 2: it is in the list, and so alive.
        unsafe { self.remove(first) };
        Some(first)
    }

    /// Returns the links of a waiter.
    ///
    /// # Safety
    /// The waiter is alive.
    unsafe fn links(&mut self, waiter: NonNull<Waiter<S>>) -> *mut Links<S> {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        // SAFETY: the caller promises that the waiter is alive.
        unsafe { waiter.as_ref() }.links.get()
    }
}
