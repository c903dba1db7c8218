//! The protocol by which workers of a pool sleep and are woken, so that none sleeps while there is work. Uses
//! only shimmed atomics and locks, so that it is model-checked.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering, fence};
use convoke_core::raw::sync::{Condvar, Mutex};
use crossbeam_utils::CachePadded;

/// The sleeping and the searching workers of a pool.
///
/// A worker is *busy* (it has work), *searching* (it has none and checks the queues; at most half of the
/// workers do) or *asleep*. One word counts the searching and the sleeping workers. "Publish" means: put work
/// where every worker checks.
///
/// 1. A poster publishes, executes a fence, and reads the word. If a worker sleeps and none searches, it
///    wakes one.
/// 2. The thread that wakes a worker takes it off the list and counts it as searching, under the lock, before
///    it actually wakes it: so posters that come in the meantime do not wake more.
/// 3. A searching worker that has found work stops counting as searching, executes a fence, and checks for
///    more work. If there is some, it wakes a worker as in rule 1. So work that was published during its
///    search, and woke no worker, is not forgotten.
/// 4. A worker that goes to sleep enters itself in the list, counts itself as sleeping (and no longer as
///    searching), executes a fence, and checks for work once more. If there is some, it takes itself off the
///    list. If another thread has done that already, a wake-up is under way, and the worker waits for it.
///
/// No wake-up is lost, because both sides write, execute a fence, and then read what the other wrote; and the
/// fences have one order. If the poster's fence is first, the worker's last check (rules 3 and 4) sees the
/// work. If it is second, the poster sees the worker asleep and wakes it, or sees another worker searching,
/// to which the same applies.
pub struct Sleepers {
    /// Number of searching workers times [`SEARCHING`] plus number of sleeping workers times [`SLEEPING`].
    counts: CachePadded<AtomicUsize>,
    /// The sleeping workers. The last one to fall asleep, whose caches are the warmest, is woken first.
    asleep: Mutex<Vec<usize>>,
    parkers: Box<[Parker]>,
}

const SEARCHING: usize = 1;
const SLEEPING: usize = 1 << 16;

/// Largest number of workers that can be counted.
pub(crate) const MAX_WORKERS: usize = SLEEPING - 1;

/// Blocks the thread of one worker.
struct Parker {
    woken: Mutex<bool>,
    wake: Condvar,
}

/// Proof that a worker counts as searching. It is returned by [`Sleepers::found`] or [`Sleepers::sleep`].
#[must_use = "a searching worker must stop counting as searching"]
#[derive(Debug)]
pub struct Searching(());

impl Sleepers {
    /// Creates the state for `workers` workers, all busy.
    ///
    /// # Panics
    /// If `workers` is more than 65535.
    pub fn new(workers: usize) -> Self {
        assert!(workers <= MAX_WORKERS, "a pool can have at most {MAX_WORKERS} threads");
        Self {
            counts: CachePadded::new(AtomicUsize::new(0)),
            asleep: Mutex::new(Vec::with_capacity(workers)),
            parkers: (0..workers)
                .map(|_| Parker { woken: Mutex::new(false), wake: Condvar::new() })
                .collect(),
        }
    }

    /// Returns the number of workers.
    #[inline]
    pub fn workers(&self) -> usize {
        self.parkers.len()
    }

    /// Wakes a worker if rule 1 says so. Called after work was published.
    #[inline]
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if needs_wake_up(self.counts.load(Ordering::Relaxed)) {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Checked again under the lock: several posters may come here at once, and one wake-up serves them
        // all.
        if !needs_wake_up(self.counts.load(Ordering::Relaxed)) {
            return;
        }
        if let Some(worker) = asleep.pop() {
            // Rule 2.
            self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
            drop(asleep);
            self.parkers[worker].wake();
        }
    }

    /// Begins to search, unless half of the workers do so already.
    pub fn search(&self) -> Option<Searching> {
        let counts = self.counts.load(Ordering::Relaxed);
        if 2 * (counts % SLEEPING) >= self.workers() {
            return None;
        }
        // Several workers may pass the check at once. It does no harm if more than half search for a moment.
        self.counts.fetch_add(SEARCHING, Ordering::Relaxed);
        Some(Searching(()))
    }

    /// Ends a search that has found work, as rule 3 says. `more` returns true if there is further work.
    pub fn found(&self, searching: Searching, more: impl FnOnce() -> bool) {
        let Searching(()) = searching;
        self.counts.fetch_sub(SEARCHING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if more() {
            self.notify();
        }
    }

    /// Sleeps until there is work, as rule 4 says. `any_work` is the last check. Returns a permit if the
    /// worker counts as searching afterwards: it does if it was woken, and does not if it saw the work
    /// itself.
    pub fn sleep(
        &self,
        worker: usize,
        searching: Option<Searching>,
        any_work: impl FnOnce() -> bool,
    ) -> Option<Searching> {
        {
            let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            asleep.push(worker);
            let searched = if searching.is_some() { SEARCHING } else { 0 };
            self.counts.fetch_add(SLEEPING - searched, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        if any_work() && self.remove_from_list(worker) {
            return None;
        }
        self.parkers[worker].sleep();
        Some(Searching(()))
    }

    /// Takes the calling worker off the list. Returns false if another thread has done it.
    fn remove_from_list(&self, worker: usize) -> bool {
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(index) = asleep.iter().position(|other| *other == worker) else {
            return false;
        };
        asleep.remove(index);
        self.counts.fetch_sub(SLEEPING, Ordering::Relaxed);
        true
    }

    /// Wakes all workers, after the end of the pool was published.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while let Some(worker) = asleep.pop() {
            self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
            self.parkers[worker].wake();
        }
    }
}

#[inline]
fn needs_wake_up(counts: usize) -> bool {
    counts >= SLEEPING && counts.is_multiple_of(SLEEPING)
}

impl Parker {
    fn wake(&self) {
        *self.woken.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.wake.notify_one();
    }

    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while !core::mem::take(&mut *woken) {
            woken = self.wake.wait(woken).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl core::fmt::Debug for Sleepers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let counts = self.counts.load(Ordering::Relaxed);
        f.debug_struct("Sleepers")
            .field("workers", &self.workers())
            .field("searching", &(counts % SLEEPING))
            .field("sleeping", &(counts / SLEEPING))
            .finish_non_exhaustive()
    }
}
