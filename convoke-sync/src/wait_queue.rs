//! A state under a short lock, and lists of those who wait for it to change, linked through their futures: waiting does
//! not allocate, and whoever goes is taken out at once.
//!
//! Who waits has a [`Node`] in its future, and stands *out*, *queued* or *granted*. Whoever changes the state grants:
//! he takes the first node out of its list, leaves there what it is given, and calls its waker when the lock is free.
//!
//! 1. What is in a node belongs to its owner while it stands out or granted, and to whoever holds the lock while it is
//!    queued.
//! 2. A node becomes queued by its owner, and is out again by its owner, both under the lock. It becomes granted under
//!    the lock by whoever holds it, who does not touch it afterwards; from there its owner takes it out without the
//!    lock.
//! 3. A queued node is in a list. It is pinned, and its owner takes it out before it is gone.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;
use core::task::Waker;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::sync::const_outside_models;

use convoke_core::raw::wake;
use convoke_core::raw::{SpinGuard, SpinLock};

/// See the head of this file. `S` is the state, `P` what a node carries.
pub(crate) struct WaitQueue<S, P, const LISTS: usize = 1> {
    inner: SpinLock<Inner<S, P, LISTS>>,
}

struct Inner<S, P, const LISTS: usize> {
    state: S,
    lists: [List<P>; LISTS],
}

// SAFETY: the lists lead to nodes, which are used under the lock alone. What they carry and the state may go from
// thread to thread.
unsafe impl<S: Send, P: Send, const LISTS: usize> Send for Inner<S, P, LISTS> {}

// Nothing foreign runs under the lock, so no panic leaves a state half changed.
impl<S, P, const LISTS: usize> UnwindSafe for WaitQueue<S, P, LISTS> {}
impl<S, P, const LISTS: usize> RefUnwindSafe for WaitQueue<S, P, LISTS> {}

struct List<P> {
    first: Option<NonNull<Node<P>>>,
    last: Option<NonNull<Node<P>>>,
    length: usize,
}

/// One who waits.
pub(super) struct Node<P> {
    standing: AtomicU8,
    /// Written when it is queued: a call that does not have to wait pays nothing for it. Of a granted node only the
    /// payload is left.
    inside: UnsafeCell<MaybeUninit<Inside<P>>>,
}

struct Inside<P> {
    previous: Option<NonNull<Node<P>>>,
    next: Option<NonNull<Node<P>>>,
    waker: Waker,
    payload: P,
    list: usize,
}

const OUT: u8 = 0;
const QUEUED: u8 = 1;
const GRANTED: u8 = 2;

/// Where one who waits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// In no list.
    Out,
    /// In a list.
    Queued,
    /// Taken out of its list by somebody, who has left something.
    Granted,
}

/// The lock is held while this exists.
pub(crate) struct Locked<'q, S, P, const LISTS: usize> {
    queue: &'q WaitQueue<S, P, LISTS>,
    inner: SpinGuard<'q, Inner<S, P, LISTS>>,
}

impl<S, P, const LISTS: usize> WaitQueue<S, P, LISTS> {
    const_outside_models! {
        pub(crate) fn new(state: S) -> Self {
            let lists = [const { List { first: None, last: None, length: 0 } }; LISTS];
            Self { inner: SpinLock::new(Inner { state, lists }) }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, S, P, LISTS> {
        Locked { queue: self, inner: self.inner.lock() }
    }

    /// Grants all who are in this list now, and wakes them.
    pub(crate) fn grant_all(&self, list: usize) {
        let mut left = self.lock().inner.lists[list].length;
        // Not more often: somebody may queue again meanwhile. Who is granted although he came later looks, and queues
        // again.
        while left > 0
            && let Some(((), waker)) = { self.lock().grant(list, |_| ()) }
        {
            left -= 1;
            wake(waker);
        }
    }
}

impl<'q, S, P, const LISTS: usize> Locked<'q, S, P, LISTS> {
    #[inline]
    pub(crate) fn state(&mut self) -> &mut S {
        &mut self.inner.state
    }

    pub(super) fn is_of(&self, queue: &WaitQueue<S, P, LISTS>) -> bool {
        core::ptr::eq(self.queue, queue)
    }

    /// What the first in this list carries.
    #[inline]
    pub(crate) fn first(&self, list: usize) -> Option<&P> {
        let first = self.inner.lists[list].first?;
        // SAFETY: rule 1: it is queued, and we hold the lock. Rule 3: it is there.
        unsafe { first.as_ref().inside.with(|inside| Some(&(*inside).assume_init_ref().payload)) }
    }

    /// Where the node of the first in this list is, to be compared.
    pub(crate) fn first_address(&self, list: usize) -> Option<usize> {
        self.inner.lists[list].first.map(|node| node.addr().get())
    }

    #[inline]
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.inner.lists[list].first.is_none()
    }

    /// Takes the first out of its list, lets `give` change what it carries, and grants. Its waker is to be called when
    /// the lock was given back. `give` is code of this folder: it runs under the lock.
    #[inline]
    pub(crate) fn grant<R>(&mut self, list: usize, give: impl FnOnce(&mut P) -> R) -> Option<(R, Waker)> {
        let node = self.inner.lists[list].first?;
        // SAFETY: rules 1 and 3, as above. The waker is read once: who is granted has none. The last thing that is
        // touched is the standing, and the node stays until then.
        unsafe {
            let granted = node.as_ref().inside.with_mut(|inside| {
                let inside = (*inside).as_mut_ptr();
                self.inner.lists[list].connect(None, (*inside).next);
                self.inner.lists[list].length -= 1;
                let given = give(&mut (*inside).payload);
                (given, (&raw const (*inside).waker).read())
            });
            node.as_ref().standing.store(GRANTED, Ordering::Release);
            Some(granted)
        }
    }

    /// # Safety
    /// The node is out, its owner calls, and it is pinned and taken out before it is gone.
    pub(super) unsafe fn link(
        &mut self,
        list: usize,
        first: bool,
        node: NonNull<Node<P>>,
        payload: P,
        waker: Waker,
    ) {
        let ends = &mut self.inner.lists[list];
        let (previous, next) = if first { (None, ends.first) } else { (ends.last, None) };
        // SAFETY: rule 1: the node is its owner's, who calls; its neighbours are queued, and we hold the lock.
        unsafe {
            node.as_ref().inside.with_mut(|inside| {
                (*inside).write(Inside { previous, next, waker, payload, list });
            });
            ends.connect(previous, Some(node));
            ends.connect(Some(node), next);
            ends.length += 1;
            // The lock makes it known.
            node.as_ref().standing.store(QUEUED, Ordering::Relaxed);
        }
    }

    /// Takes the node out, if it is still queued: what it carried, and its waker, to be dropped when the lock is free.
    ///
    /// # Safety
    /// Its owner calls; if it is queued, then here.
    pub(super) unsafe fn take_out(&mut self, node: NonNull<Node<P>>) -> Option<(P, Waker)> {
        // SAFETY: rules 1 and 2: if it is queued now, it stays so while we hold the lock. What is read out is not there
        // any more for who is out.
        unsafe {
            if node.as_ref().standing.load(Ordering::Relaxed) != QUEUED {
                return None;
            }
            let inside = node.as_ref().inside.with_mut(|inside| (*inside).assume_init_read());
            let ends = &mut self.inner.lists[inside.list];
            ends.connect(inside.previous, inside.next);
            ends.length -= 1;
            node.as_ref().standing.store(OUT, Ordering::Relaxed);
            Some((inside.payload, inside.waker))
        }
    }

    /// Gives the node another waker, if it is queued and has not the same one already: what `spare` is then, is to be
    /// dropped when the lock is free. False if it needs one and there is none.
    ///
    /// # Safety
    /// As [`take_out`](Self::take_out).
    pub(super) unsafe fn renew(
        &mut self,
        node: NonNull<Node<P>>,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        // SAFETY: rules 1 and 2, as above.
        unsafe {
            if node.as_ref().standing.load(Ordering::Relaxed) != QUEUED {
                return true;
            }
            node.as_ref().inside.with_mut(|inside| {
                let before = &mut (*inside).assume_init_mut().waker;
                if before.will_wake(waker) {
                    return true;
                }
                let Some(spare) = spare else { return false };
                core::mem::swap(before, spare);
                true
            })
        }
    }
}

impl<P> List<P> {
    /// Makes the two neighbours, either of which may be the end.
    ///
    /// # Safety
    /// Both are in this list or about to be, and its lock is held.
    unsafe fn connect(&mut self, previous: Option<NonNull<Node<P>>>, next: Option<NonNull<Node<P>>>) {
        // SAFETY: rule 1: they are queued or the caller's own.
        unsafe {
            match previous {
                Some(node) => node.as_ref().inside.with_mut(|inside| (*inside).assume_init_mut().next = next),
                None => self.first = next,
            }
            match next {
                Some(node) => {
                    node.as_ref().inside.with_mut(|inside| (*inside).assume_init_mut().previous = previous)
                }
                None => self.last = previous,
            }
        }
    }
}

impl<P> Node<P> {
    #[inline]
    pub(super) fn new() -> Self {
        Self { standing: AtomicU8::new(OUT), inside: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    #[inline]
    pub(super) fn standing(&self) -> Standing {
        match self.standing.load(Ordering::Acquire) {
            OUT => Standing::Out,
            QUEUED => Standing::Queued,
            _ => Standing::Granted,
        }
    }

    /// What it was granted. It is out then.
    ///
    /// # Safety
    /// It stands granted, and its owner calls.
    #[inline]
    pub(super) unsafe fn take_granted(&self) -> P {
        self.standing.store(OUT, Ordering::Relaxed);
        // SAFETY: rule 1. It is read once: from now on the node is out.
        unsafe { self.inside.with(|inside| (&raw const (*(*inside).as_ptr()).payload).read()) }
    }
}

impl<P> Drop for Node<P> {
    #[inline]
    fn drop(&mut self) {
        if self.standing() == Standing::Granted {
            // SAFETY: it is granted, and nobody else's any more.
            drop(unsafe { self.take_granted() });
        }
    }
}

impl<S: fmt::Debug, P, const LISTS: usize> fmt::Debug for WaitQueue<S, P, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue").finish_non_exhaustive()
    }
}
