//! The queues of a pool that all its threads share, one for each priority, and the word that they look at before each run.
//! Only shimmed atomics and locks: it is model-checked.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{RunQueue, Runnable};
use crossbeam_utils::CachePadded;

use super::injector::Injector;
use super::priority::Priority;

/// Queues by priority, and signals to those who are busy.
///
/// What is normal waits here only if it comes from outside, else with the thread that posted it. What is high or low always
/// waits here, so that all threads see it; it is taken one piece at a time, for what a thread has put aside for itself the
/// others cannot have first.
///
/// A busy thread looks at one word before each run, and as long as it is zero knows that nothing is urgent and that the
/// pool has not ended: priorities cost those nothing who have none. (Whoever is about to sleep looks at the queues
/// themselves.)
///
/// 1. Who queues high work sets `URGENT` *afterwards*.
/// 2. Who takes high work and leaves some sets it, too: another who looked while the queue was being turned round (rule 4 of
///    the injector) may have cleared it.
/// 3. Who finds none clears it, and looks again; if there is some now he sets it again.
///
/// All change the one word by a read-modify-write, and so there is an order: if the clearing is the last, it has seen what
/// was queued before each setting, and rule 3 has set it again. So while high work waits and nobody is at it, it is set.
pub struct Priorities {
    signals: CachePadded<AtomicUsize>,
    queues: [Injector; 3],
}

/// There may be work of high priority.
const URGENT: usize = 1;
/// The pool has ended.
const STOPPING: usize = 2;

/// What a thread sees before a run.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals(usize);

impl Signals {
    /// Nothing: it goes on with what is normal.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// There may be work of high priority.
    pub fn is_urgent(self) -> bool {
        self.0 & URGENT != 0
    }

    /// The pool has ended.
    #[inline]
    pub fn is_stopping(self) -> bool {
        self.0 & STOPPING != 0
    }
}

impl Priorities {
    /// Open, empty queues that hold `limit` each, at most, of what comes from outside.
    pub fn new(limit: usize) -> Self {
        Self {
            signals: CachePadded::new(AtomicUsize::new(0)),
            queues: Priority::ALL.map(|_| Injector::new(limit)),
        }
    }

    /// What there is to know before a run. Relaxed: who is told a moment later is told before the next.
    #[inline]
    pub fn signals(&self) -> Signals {
        Signals(self.signals.load(Ordering::Relaxed))
    }

    /// The queue of what is normal and comes from outside.
    #[inline]
    pub fn normal(&self) -> &Injector {
        &self.queues[Priority::Normal as usize]
    }

    fn queue(&self, priority: Priority) -> &Injector {
        &self.queues[priority as usize]
    }

    /// Queues what comes from outside. Handed back if the queue is closed or full.
    pub fn push(&self, priority: Priority, runnable: Runnable) -> Result<(), Runnable> {
        self.queue(priority).push(runnable)?;
        self.tell(priority);
        Ok(())
    }

    /// Queues what the pool's own work posts, which is not limited. Handed back if the queue is closed.
    pub fn push_from_inside(&self, priority: Priority, runnable: Runnable) -> Result<(), Runnable> {
        self.queue(priority).push_over_limit(runnable)?;
        self.tell(priority);
        Ok(())
    }

    /// Rule 1. Release: whoever clears it afterwards sees what was queued.
    fn tell(&self, priority: Priority) {
        if priority == Priority::High {
            self.signals.fetch_or(URGENT, Ordering::Release);
        }
    }

    /// Takes the first piece of that priority. The caller, if there is one for him, tells the sleepers of more.
    pub fn take(&self, priority: Priority) -> Option<Runnable> {
        let queue = self.queue(priority);
        let mut first = None;
        queue.take(1, |runnable| first = Some(runnable));
        if priority == Priority::High {
            self.settle(queue);
        }
        first
    }

    /// Rules 2 and 3.
    fn settle(&self, high: &Injector) {
        if !high.is_empty() {
            self.signals.fetch_or(URGENT, Ordering::Release);
        } else if self.signals().is_urgent() {
            self.signals.fetch_and(!URGENT, Ordering::AcqRel);
            if !high.is_empty() {
                self.signals.fetch_or(URGENT, Ordering::Release);
            }
        }
    }

    /// Whether nothing of that priority is to be had.
    pub fn has_none(&self, priority: Priority) -> bool {
        self.queue(priority).is_empty()
    }

    /// Whether nothing is to be had; see rule 4 of the injector.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(Injector::is_empty)
    }

    /// Tells everybody who is busy that the pool has ended, closes the queues for good, and takes out what is left.
    pub fn close(&self) -> RunQueue {
        self.signals.fetch_or(STOPPING, Ordering::Relaxed);
        let mut left = RunQueue::new();
        for queue in &self.queues {
            left.append(&mut queue.close());
        }
        left
    }

    /// How many were handed back because their queue was full.
    pub fn refused(&self) -> usize {
        self.queues.iter().map(Injector::refused).sum()
    }
}

impl core::fmt::Debug for Priorities {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Priorities").field("signals", &self.signals()).field("queues", &self.queues).finish()
    }
}
