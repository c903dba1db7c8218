//! The consumers that wait for the work of a `split`: a list that is linked through their operations, so that one of
//! many can leave without a search.
//!
//! 1. A place is in at most one list. Its links are touched only by that list, which is guarded by a lock.
//! 2. A place stays where it is, and alive, from `push` until it is out of the list again.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::UnsafeCell;

/// A consumer that waits: how its wait is ended, and its neighbours in the list.
pub(super) struct Place<S: Sender> {
    end: unsafe fn(NonNull<Self>, OutcomeOf<S>),
    links: UnsafeCell<Links<S>>,
}

struct Links<S: Sender> {
    listed: bool,
    next: Option<NonNull<Place<S>>>,
    previous: Option<NonNull<Place<S>>>,
}

impl<S: Sender> Place<S> {
    /// A place that is in no list. `end` is given its address.
    pub(super) fn new(end: unsafe fn(NonNull<Self>, OutcomeOf<S>)) -> Self {
        let links = Links { listed: false, next: None, previous: None };
        Self { end, links: UnsafeCell::new(links) }
    }

    /// Ends the wait.
    ///
    /// # Safety
    /// Called once, by whoever took the place out of the list. The consumer may be gone afterwards.
    pub(super) unsafe fn end(this: NonNull<Self>, outcome: OutcomeOf<S>) {
        // SAFETY: the consumer is alive until its wait is ended, which is done here.
        unsafe { (this.as_ref().end)(this, outcome) };
    }
}

/// The places of those who wait, in the order in which they came.
pub(super) struct Places<S: Sender> {
    first: Option<NonNull<Place<S>>>,
    last: Option<NonNull<Place<S>>>,
    count: usize,
    /// How many places were touched, to see that it does not grow with the square of their number.
    #[cfg(test)]
    pub(super) steps: usize,
}

// SAFETY: rule 1: the list is guarded by a lock, and the places belong to operations, which are `Send`.
unsafe impl<S: Sender> Send for Places<S> {}

impl<S: Sender> Places<S> {
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            last: None,
            count: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds a place at the end.
    ///
    /// # Safety
    /// Rule 2; the place is in no list.
    pub(super) unsafe fn push(&mut self, place: NonNull<Place<S>>) {
        // SAFETY: rule 1, by `&mut self`; rule 2: the place and the last one are alive.
        unsafe {
            self.links(place).write(Links { listed: true, next: None, previous: self.last });
            match self.last {
                Some(last) => (*self.links(last)).next = Some(place),
                None => self.first = Some(place),
            }
        }
        self.last = Some(place);
        self.count += 1;
    }

    /// Takes a place out. False if it is not in the list.
    ///
    /// # Safety
    /// The place is alive, and in this list or in none.
    pub(super) unsafe fn remove(&mut self, place: NonNull<Place<S>>) -> bool {
        // SAFETY: rule 1, by `&mut self`; rule 2: the neighbours are alive.
        unsafe {
            let empty = Links { listed: false, next: None, previous: None };
            let Links { listed, next, previous } = self.links(place).replace(empty);
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

    /// Takes the first one out.
    pub(super) fn pop(&mut self) -> Option<NonNull<Place<S>>> {
        let first = self.first?;
        // SAFETY: rule 2: it is in the list, and so alive.
        unsafe { self.remove(first) };
        Some(first)
    }

    /// # Safety
    /// The place is alive.
    unsafe fn links(&mut self, place: NonNull<Place<S>>) -> *mut Links<S> {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        // SAFETY: the place is alive.
        unsafe { place.as_ref() }.links.get()
    }
}
