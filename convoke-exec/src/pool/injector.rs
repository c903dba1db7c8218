//! The queue for work that is posted from outside a pool. Uses only shimmed atomics and locks, so that it is
//! model-checked.

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{RunQueue, Runnable};
use crossbeam_utils::CachePadded;

use crate::inbox::{Inbox, Pushed};

/// A first-in, first-out queue for many posters and many takers. It never allocates: work is linked through
/// its own header.
///
/// 1. Posters push to the inbox, a lock-free stack, with one compare-exchange.
/// 2. Takers lock the backlog, and its holder is the taker of the inbox. If the backlog is empty, it takes
///    the whole stack and reverses it. So work leaves in the order in which it came, whichever thread takes
///    it.
/// 3. Closing the inbox needs the lock too. Work that was pushed before is returned to the closer, work that
///    comes later to its poster. Nothing is lost in between.
/// 4. While a taker reverses the stack, [`is_empty`](Injector::is_empty) may return true to other threads
///    although there is work. Hence a taker that gets more than it runs at once notifies the sleepers again.
pub struct Injector {
    /// Its taker is always awake: workers that sleep are woken by other means.
    inbox: CachePadded<Inbox>,
    backlog: Mutex<RunQueue>,
    /// Length of the backlog, written under its lock, so that it can be read without.
    backlogged: AtomicUsize,
    /// Largest number of queued pieces; [`usize::MAX`] for no limit, and then they are not counted.
    limit: usize,
    queued: AtomicUsize,
    refused: AtomicUsize,
}

impl Injector {
    /// Creates an open, empty queue for at most `limit` pieces of work.
    pub fn new(limit: usize) -> Self {
        Self {
            inbox: CachePadded::new(Inbox::new()),
            backlog: Mutex::new(RunQueue::new()),
            backlogged: AtomicUsize::new(0),
            limit,
            queued: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    /// Adds work at the end. Returns it if the queue is closed or full.
    #[inline]
    pub fn push(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.limit != usize::MAX && self.queued.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(runnable);
        }
        self.link(runnable)
    }

    /// Adds work at the end, even if the queue is full. Returns it if the queue is closed.
    pub fn push_over_limit(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.limit != usize::MAX {
            self.queued.fetch_add(1, Ordering::Relaxed);
        }
        self.link(runnable)
    }

    /// Adds work at the end of a queue without a limit. Returns it if the queue is closed.
    #[inline]
    pub fn push_unlimited(&self, runnable: Runnable) -> Result<(), Runnable> {
        debug_assert!(self.is_unlimited(), "a queue with a limit counts its work");
        self.link(runnable)
    }

    /// Returns true if the queue has no limit.
    pub fn is_unlimited(&self) -> bool {
        self.limit == usize::MAX
    }

    #[inline]
    fn link(&self, runnable: Runnable) -> Result<(), Runnable> {
        match self.inbox.push(runnable) {
            Pushed::Queued | Pushed::WakeSleeper => Ok(()),
            Pushed::Closed(runnable) => Err(runnable),
        }
    }

    /// Takes up to `most` pieces from the front and passes them to `take`, in order. Returns how many.
    #[inline]
    pub fn take(&self, most: usize, mut take: impl FnMut(Runnable)) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut backlog = self.backlog.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if backlog.is_empty() {
            // Rule 2: we hold the lock, so we are the taker.
            *backlog = self.inbox.take();
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

    /// Returns true if there is no work, with the exception in rule 4. Relaxed: a worker that goes to sleep
    /// has executed a fence before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inbox.is_empty_now() && self.backlogged.load(Ordering::Relaxed) == 0
    }

    /// Closes the queue for good and takes what is left.
    pub fn close(&self) -> RunQueue {
        let mut backlog = self.backlog.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut left = core::mem::take(&mut *backlog);
        left.append(&mut self.inbox.close());
        self.backlogged.store(0, Ordering::Relaxed);
        left
    }

    /// Returns the number of pieces that were refused because the queue was full.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl core::fmt::Debug for Injector {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Injector").field("refused", &self.refused()).finish_non_exhaustive()
    }
}
