//! The queues that all workers of a pool share, one for each priority, and the word that a worker checks
//! before each run. Uses only shimmed atomics and locks, so that it is model-checked.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{RunQueue, Runnable};
use crossbeam_utils::CachePadded;

use super::injector::Injector;
use super::priority::Priority;

/// One queue for each priority, and signals to busy workers.
///
/// Work of normal priority waits here only if it was posted from outside; otherwise it waits in the deque of
/// the worker that posted it. Work of high or low priority always waits here, so that all workers see it. It
/// is taken one piece at a time: what a worker has put into its own deque is no longer ordered by priority.
///
/// A busy worker checks one word before each run. While it is 0, no work is urgent and the pool is not being
/// dropped. So priorities cost nothing if they are not used. A worker that is about to sleep checks the
/// queues themselves.
///
/// 1. A poster of high work sets `URGENT` *after* it has queued the work.
/// 2. A worker that takes high work and leaves some sets it too: another worker that checked while the queue
///    was being reversed (rule 4 of the injector) may have cleared it.
/// 3. A worker that finds no high work clears it and checks again. If there is some now, it sets it again.
///
/// All of them change the one word by read-modify-write operations, which have one order. If a clear comes
/// last, it sees what was queued before each set, and rule 3 has set the bit again. So the bit is set while
/// high work waits and no worker is taking it.
pub struct Priorities {
    signals: CachePadded<AtomicUsize>,
    queues: [Injector; 3],
}

/// There may be work of high priority.
const URGENT: usize = 1;
/// The pool is being dropped.
const STOPPING: usize = 2;

/// The signals that a worker checks before each run.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySignals(usize);

impl PrioritySignals {
    /// Returns true if there are no signals: the worker continues with normal work.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns true if there may be work of high priority.
    pub fn is_urgent(self) -> bool {
        self.0 & URGENT != 0
    }

    /// Returns true if the pool is being dropped.
    #[inline]
    pub fn is_stopping(self) -> bool {
        self.0 & STOPPING != 0
    }
}

impl Priorities {
    /// Creates open, empty queues, each for at most `limit` pieces of work that is posted from outside.
    pub fn new(limit: usize) -> Self {
        Self {
            signals: CachePadded::new(AtomicUsize::new(0)),
            queues: Priority::ALL.map(|_| Injector::new(limit)),
        }
    }

    /// Reads the signals. Relaxed: a worker that misses a signal sees it before its next run.
    #[inline]
    pub fn signals(&self) -> PrioritySignals {
        PrioritySignals(self.signals.load(Ordering::Relaxed))
    }

    /// Returns the queue for normal work that is posted from outside.
    #[inline]
    pub fn normal(&self) -> &Injector {
        &self.queues[Priority::Normal.index()]
    }

    fn queue(&self, priority: Priority) -> &Injector {
        &self.queues[priority.index()]
    }

    /// Queues work that is posted from outside. Returns it if the queue is closed or full.
    pub fn push(&self, priority: Priority, runnable: Runnable) -> Result<(), Runnable> {
        self.queue(priority).push(runnable)?;
        self.signal(priority);
        Ok(())
    }

    /// Queues work that the pool's own work posts, without a limit. Returns it if the queue is closed.
    pub fn push_from_inside(&self, priority: Priority, runnable: Runnable) -> Result<(), Runnable> {
        self.queue(priority).push_over_limit(runnable)?;
        self.signal(priority);
        Ok(())
    }

    /// Sets `URGENT` for high work, as rule 1 says. Release: a thread that clears it later sees what was
    /// queued.
    fn signal(&self, priority: Priority) {
        if priority == Priority::High {
            self.signals.fetch_or(URGENT, Ordering::Release);
        }
    }

    /// Takes the first piece of work of this priority. If there is more, the caller must notify the sleepers.
    pub fn take(&self, priority: Priority) -> Option<Runnable> {
        let queue = self.queue(priority);
        let mut first = None;
        queue.take(1, |runnable| first = Some(runnable));
        if priority == Priority::High {
            self.update_signal(queue);
        }
        first
    }

    /// Sets or clears `URGENT` after a take, as rules 2 and 3 say.
    fn update_signal(&self, high: &Injector) {
        if !high.is_empty() {
            self.signals.fetch_or(URGENT, Ordering::Release);
        } else if self.signals().is_urgent() {
            self.signals.fetch_and(!URGENT, Ordering::AcqRel);
            if !high.is_empty() {
                self.signals.fetch_or(URGENT, Ordering::Release);
            }
        }
    }

    /// Returns true if there is no work of this priority.
    pub fn has_none(&self, priority: Priority) -> bool {
        self.queue(priority).is_empty()
    }

    /// Returns true if there is no work, with the exception in rule 4 of the injector.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(Injector::is_empty)
    }

    /// Signals that the pool is being dropped, closes the queues for good, and takes what is left.
    pub fn close(&self) -> RunQueue {
        self.signals.fetch_or(STOPPING, Ordering::Relaxed);
        let mut left = RunQueue::new();
        for queue in &self.queues {
            left.append(&mut queue.close());
        }
        left
    }

    /// Returns the number of pieces that were refused because their queue was full.
    pub fn refused(&self) -> usize {
        self.queues.iter().map(Injector::refused).sum()
    }
}

impl core::fmt::Debug for Priorities {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Priorities").field("signals", &self.signals()).field("queues", &self.queues).finish()
    }
}
