//! The queue through which work comes into a pool from outside. Only shimmed atomics and locks: it is model-checked.

#![allow(unsafe_code)]

use core::ptr;

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use convoke_core::raw::{Header, RunQueue, Runnable};
use crossbeam_utils::CachePadded;

/// A first-in first-out queue for many posters and many takers. It never allocates: work is linked through its own
/// header.
///
/// 1. Posters push on a lock-free stack, with one compare-exchange.
/// 2. Takers hold the lock of the backlog. When the backlog is empty, its holder takes the whole stack at once and
///    turns it round: so work leaves in the order in which it came, whoever takes it.
/// 3. Closing puts a mark in place of the stack's head. What was pushed before it is handed to the closer, what
///    comes after is handed back to its poster: nothing is in neither hand.
/// 4. While a taker turns the stack round, [`is_empty`](Injector::is_empty) may say so to others although there is
///    work. Hence a taker that got more than it runs at once tells the sleepers again.
pub struct Injector {
    /// The newest; null when there is none, [`CLOSED`] after the end.
    newest: CachePadded<AtomicPtr<Header>>,
    backlog: Mutex<RunQueue>,
    /// The length of the backlog, written under its lock, for a look without it.
    backlogged: AtomicUsize,
    /// How many may be queued; [`usize::MAX`] for any number, and then they are not counted.
    limit: usize,
    queued: AtomicUsize,
    refused: AtomicUsize,
}

/// The mark of a closed stack: an address that no header has.
const CLOSED: *mut Header = ptr::without_provenance_mut(1);

impl Injector {
    /// An open, empty queue that holds `limit` at most.
    pub fn new(limit: usize) -> Self {
        Self {
            newest: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            backlog: Mutex::new(RunQueue::new()),
            backlogged: AtomicUsize::new(0),
            limit,
            queued: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    /// Adds one at the end. Handed back if the queue is closed or full.
    #[inline]
    pub fn push(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.limit != usize::MAX && self.queued.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(runnable);
        }
        self.link(runnable)
    }

    /// Adds one at the end, however many there are. Handed back if the queue is closed.
    pub fn push_over_limit(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.limit != usize::MAX {
            self.queued.fetch_add(1, Ordering::Relaxed);
        }
        self.link(runnable)
    }

    /// Adds one at the end of a queue that holds any number. Handed back if it is closed.
    #[inline]
    pub fn push_unlimited(&self, runnable: Runnable) -> Result<(), Runnable> {
        debug_assert!(self.is_unlimited(), "they are counted here");
        self.link(runnable)
    }

    /// Whether it holds any number.
    pub fn is_unlimited(&self) -> bool {
        self.limit == usize::MAX
    }

    #[inline]
    fn link(&self, runnable: Runnable) -> Result<(), Runnable> {
        let header = runnable.into_raw();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            if newest == CLOSED {
                // SAFETY: `header` came from `into_raw` above and was not published.
                return Err(unsafe { Runnable::from_raw(header) });
            }
            // SAFETY: the obligation of `header` is ours until the exchange below succeeds.
            unsafe { Runnable::set_link(header, newest) };
            // Release: the taker sees the link, and whatever the poster did to the work before.
            match self.newest.compare_exchange_weak(
                newest,
                header.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => newest = now,
            }
        }
    }

    /// Takes up to `most` from the front and hands them to `take`, in order. Says how many.
    #[inline]
    pub fn take(&self, most: usize, mut take: impl FnMut(Runnable)) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut backlog = self.backlog.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if backlog.is_empty() && !self.stack_is_empty() {
            self.refill(&mut backlog);
        }
        let mut taken = 0;
        while taken < most
            && let Some(runnable) = backlog.pop()
        {
            take(runnable);
            taken += 1;
        }
        self.backlogged.store(backlog.len(), Ordering::Relaxed);
        drop(backlog);
        if self.limit != usize::MAX {
            self.queued.fetch_sub(taken, Ordering::Relaxed);
        }
        taken
    }

    /// Rule 2. The lock of the backlog is held, the backlog is empty and the stack is not.
    fn refill(&self, backlog: &mut RunQueue) {
        // A plain swap: under the lock nobody closes the queue or takes the stack away.
        let newest = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: what lies on the stack was put there by `push` with its obligation, and the swap made it ours alone.
        *backlog = unsafe { RunQueue::from_newest_first(newest) };
    }

    /// Whether nothing is to be had; see rule 4. Relaxed: whoever goes to sleep on it has fenced before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stack_is_empty() && self.backlogged.load(Ordering::Relaxed) == 0
    }

    #[inline]
    fn stack_is_empty(&self) -> bool {
        let newest = self.newest.load(Ordering::Relaxed);
        newest.is_null() || newest == CLOSED
    }

    /// Closes the queue for good and takes out what is left.
    pub fn close(&self) -> RunQueue {
        let mut backlog = self.backlog.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let newest = self.newest.swap(CLOSED, Ordering::AcqRel);
        let mut left = core::mem::take(&mut *backlog);
        if newest != CLOSED {
            // SAFETY: as in `refill`.
            left.append(&mut unsafe { RunQueue::from_newest_first(newest) });
        }
        self.backlogged.store(0, Ordering::Relaxed);
        left
    }

    /// How many were handed back because the queue was full.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl core::fmt::Debug for Injector {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Injector").field("refused", &self.refused()).finish_non_exhaustive()
    }
}
