//! The list of consumers that wait for the work of a `split`. It is linked through their operations, so that
//! one of many can leave without a search.
//!
//! 1. A waiter is in at most one list, from `push` until `remove` or `pop`. Only that list touches its links,
//!    and the list is guarded by a lock.
//! 2. A waiter in the list is alive and does not move: the list has the completion of the operation that it is
//!    part of, and an operation lives until its completion has ended.
//!
//! It is not `IntrusiveList`, because a waiter has its completion exactly while it is in the list: both lie in one cell, which one
//! unsafe block opens. With that list, each of adding, removing and taking would need one.

#![allow(unsafe_code)]

use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::Sender;
use crate::operation::Completion;
use convoke_core::raw::sync::UnsafeCell;

/// The completion of a consumer of `S`.
pub(super) type CompletionOf<S> = Completion<<S as Sender>::Value, <S as Sender>::Error>;

/// The part of a consumer's operation that the list links: its completion, while it waits, and its
/// neighbours.
pub(super) struct Waiter<S: Sender> {
    links: UnsafeCell<Links<S>>,
    _pinned: PhantomPinned,
}

struct Links<S: Sender> {
    /// Set while it is in the list.
    completion: Option<CompletionOf<S>>,
    next: Option<Node<S>>,
    previous: Option<Node<S>>,
}

impl<S: Sender> Links<S> {
    const fn none() -> Self {
        Self { completion: None, next: None, previous: None }
    }
}

// SAFETY: rule 1: the links are guarded by the lock of the list; the completions are `Send`, because the
// values and errors of a `Shareable` are.
unsafe impl<S: Sender> Send for Waiter<S> {}

/// The address of a waiter that is alive: see [`Waiter::node`].
pub(super) struct Node<S: Sender>(NonNull<Waiter<S>>);

impl<S: Sender> Clone for Node<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Sender> Copy for Node<S> {}

// SAFETY: the waiter is touched only under the lock of the list (rule 1), and is `Send`.
unsafe impl<S: Sender> Send for Node<S> {}

impl<S: Sender> Waiter<S> {
    /// Creates a waiter that is in no list.
    pub(super) fn new() -> Self {
        Self { links: UnsafeCell::new(Links::none()), _pinned: PhantomPinned }
    }

    /// Returns the address of the waiter, for the methods of a list.
    ///
    /// # Safety
    /// The address is used only while the waiter is alive (rule 2), and with one list (rule 1).
    pub(super) unsafe fn node(self: Pin<&Self>) -> Node<S> {
        Node(NonNull::from(self.get_ref()))
    }
}

/// The waiters, in the order in which they arrived.
pub(super) struct WaiterList<S: Sender> {
    first: Option<Node<S>>,
    last: Option<Node<S>>,
    count: usize,
    /// The number of waiters touched, for a test that it does not grow with the square of their number.
    #[cfg(test)]
    pub(super) steps: usize,
}

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

    /// Appends a waiter, which is in no list. `completion` is that of the operation that it is part of (rule
    /// 2).
    pub(super) fn push(&mut self, waiter: Node<S>, completion: CompletionOf<S>) {
        let last = self.last.replace(waiter);
        *self.links(waiter) = Links { completion: Some(completion), next: None, previous: last };
        match last {
            Some(last) => self.links(last).next = Some(waiter),
            None => self.first = Some(waiter),
        }
        self.count += 1;
    }

    /// Removes a waiter and returns its completion, or `None` if it is not in the list.
    pub(super) fn remove(&mut self, waiter: Node<S>) -> Option<CompletionOf<S>> {
        let Links { completion, next, previous } = core::mem::replace(self.links(waiter), Links::none());
        completion.as_ref()?;
        match previous {
            Some(previous) => self.links(previous).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => self.links(next).previous = previous,
            None => self.last = previous,
        }
        self.count -= 1;
        completion
    }

    /// Removes the first waiter and returns its completion.
    pub(super) fn pop(&mut self) -> Option<CompletionOf<S>> {
        self.remove(self.first?)
    }

    /// Returns the links of a waiter.
    fn links(&mut self, waiter: Node<S>) -> &mut Links<S> {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        // SAFETY: `Waiter::node` requires that the address is used only while the waiter is alive. Rule 1:
        // `&mut self` holds the lock, and is borrowed as long as the result.
        unsafe { &mut *waiter.0.as_ref().links.get() }
    }
}
