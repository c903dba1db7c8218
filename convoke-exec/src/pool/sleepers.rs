//! Who of a pool's workers sleeps, and how none of them sleeps while there is work. Only shimmed atomics and locks: it
//! is model-checked.

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering, fence};
use convoke_core::raw::sync::{Condvar, Mutex};
use crossbeam_utils::CachePadded;

/// The sleeping and the searching workers of a pool.
///
/// A worker is busy (it has work), searching (it has none and looks for it; at most half of them do) or asleep. One
/// word counts the searching and the sleeping. "Publish" means: put work where every worker looks.
///
/// 1. A poster publishes, fences, reads the word; if someone sleeps and nobody searches, it wakes one.
/// 2. Whoever wakes a worker takes it off the list and counts it as searching, under the lock, before it
///    really wakes: the posters that come in the meantime do not wake more.
/// 3. A searching worker that has found work counts itself out, fences, and looks whether there is more; if so it
///    wakes one, as in rule 1. So work that was published while it searched, and woke nobody, is not forgotten.
/// 4. A worker that goes to sleep enters itself in the list, counts itself as sleeping (and no longer as searching),
///    fences, and looks for work once more. If there is some it takes itself off the list again; if someone else has
///    done that already, a wake-up is on its way, and it waits for it.
///
/// Why no wake-up is lost: both sides write, fence and then read what the other wrote, and the fences have one
/// order. If the poster's fence is the first, the worker's last look (rules 3 and 4) sees the work. If it is the
/// second, the poster sees the worker asleep and wakes it, or sees another one searching, to whom the same applies.
pub struct Sleepers {
    /// [`SEARCHING`] times the searching ones plus [`SLEEPING`] times the sleeping ones.
    counts: CachePadded<AtomicUsize>,
    /// Who sleeps; the last to fall asleep, whose caches are the warmest, is woken first.
    asleep: Mutex<Vec<usize>>,
    beds: Box<[Bed]>,
}

const SEARCHING: usize = 1;
const SLEEPING: usize = 1 << 16;

/// The most workers that can be counted.
pub(crate) const MAX_WORKERS: usize = SLEEPING - 1;

/// Where one worker sleeps.
struct Bed {
    woken: Mutex<bool>,
    wake: Condvar,
}

/// The permit of a worker that searches. It goes back by [`Sleepers::found`] or [`Sleepers::sleep`].
#[must_use = "a searching worker must count itself out"]
#[derive(Debug)]
pub struct Searching(());

impl Sleepers {
    /// For this many workers, all busy.
    ///
    /// # Panics
    /// If there are more than 65535.
    pub fn new(workers: usize) -> Self {
        assert!(workers <= MAX_WORKERS, "a pool has at most {MAX_WORKERS} threads");
        Self {
            counts: CachePadded::new(AtomicUsize::new(0)),
            asleep: Mutex::new(Vec::with_capacity(workers)),
            beds: (0..workers).map(|_| Bed { woken: Mutex::new(false), wake: Condvar::new() }).collect(),
        }
    }

    /// How many workers there are.
    #[inline]
    pub fn workers(&self) -> usize {
        self.beds.len()
    }

    /// Rule 1, called after work was published.
    #[inline]
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if wants_a_wake_up(self.counts.load(Ordering::Relaxed)) {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Looked at again: several posters come here at once, and one wake-up serves them all.
        if !wants_a_wake_up(self.counts.load(Ordering::Relaxed)) {
            return;
        }
        if let Some(worker) = asleep.pop() {
            // Rule 2.
            self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
            drop(asleep);
            self.beds[worker].wake();
        }
    }

    /// Leave to search, unless half of the workers do so already.
    pub fn search(&self) -> Option<Searching> {
        let counts = self.counts.load(Ordering::Relaxed);
        if 2 * (counts % SLEEPING) >= self.workers() {
            return None;
        }
        // Several may pass the check at once; that the half is exceeded for a moment harms nobody.
        self.counts.fetch_add(SEARCHING, Ordering::Relaxed);
        Some(Searching(()))
    }

    /// Rule 3: the search was successful. `more` says whether further work is to be had.
    pub fn found(&self, searching: Searching, more: impl FnOnce() -> bool) {
        let Searching(()) = searching;
        self.counts.fetch_sub(SEARCHING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if more() {
            self.notify();
        }
    }

    /// Rule 4: sleeps until there is work. `any_work` is the last look around. Says whether the worker, which is
    /// awake again, counts as searching: it does if it was woken, and not if it saw the work itself.
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
        if any_work() && self.get_up(worker) {
            return None;
        }
        self.beds[worker].sleep();
        Some(Searching(()))
    }

    /// Takes itself off the list; false if someone else has done it.
    fn get_up(&self, worker: usize) -> bool {
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(place) = asleep.iter().position(|other| *other == worker) else {
            return false;
        };
        asleep.remove(place);
        self.counts.fetch_sub(SLEEPING, Ordering::Relaxed);
        true
    }

    /// Wakes everyone, after something was published that concerns everyone: the end.
    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        let mut asleep = self.asleep.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while let Some(worker) = asleep.pop() {
            self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
            self.beds[worker].wake();
        }
    }
}

#[inline]
fn wants_a_wake_up(counts: usize) -> bool {
    counts >= SLEEPING && counts.is_multiple_of(SLEEPING)
}

impl Bed {
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
