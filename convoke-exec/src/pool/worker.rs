//! One thread of a pool: where it takes work from, in which order, and when it sleeps.

use core::cell::Cell;
use core::{hint, ptr};
use std::sync::Arc;

use convoke_core::raw::budget;
use convoke_core::raw::sync::Arc as SharedArc;
use convoke_core::raw::{Runnable, ScopedRef};
use crossbeam_deque::{Steal, Stealer, Worker as Deque};

use super::port::Port;
use super::priorities::PrioritySignals;
use super::priority::{HIGH_IN_A_ROW, OTHERS_EACH, Priority};
use super::shared::SharedPool;
use super::sleepers::Searching;

/// Largest number of pieces that are taken from the injector at once. Other workers can steal the rest of a
/// batch.
const BATCH: usize = 64;
/// How often a searching worker checks the queues before it sleeps, and how long it spins in between.
/// Together this takes a few microseconds, while a wake-up costs some tens.
const SEARCH_ROUNDS: usize = 4;
const SPINS_PER_ROUND: usize = 16;

/// A steal that yields fewer pieces than this shows that the thief is faster than its victim. The thief would
/// come back for every single piece, and each visit takes away the cache line that the victim works on. So
/// the next steal is delayed by this number of spins: some microseconds, while a wake-up costs some tens.
const SMALL_STEAL: usize = 16;
const STEAL_DELAY_SPINS: usize = 128;

/// The state of one worker, on the stack of its thread.
pub(super) struct Worker {
    shared: SharedArc<SharedPool>,
    /// The port whose posts go to the deque: the one of normal priority.
    port: &'static Port,
    index: usize,
    deque: Deque<Runnable>,
    /// The deques of all workers, by index.
    stealers: Arc<[Stealer<Runnable>]>,
    /// A xorshift generator that selects the first victim.
    random: Cell<u32>,
    /// The number of runs since the worker last checked low-priority and outside work first. Runs of high priority
    /// are not counted.
    runs: Cell<u32>,
    /// True if low work had its turn and the next one is for work from outside.
    low_was_served: Cell<bool>,
    high_in_a_row: Cell<u32>,
    /// True if the last steal yielded fewer than `SMALL_STEAL`.
    stole_little: Cell<bool>,
}

thread_local! {
    /// The worker of this thread, while it runs.
    static CURRENT: ScopedRef<Worker> = const { ScopedRef::new() };
}

impl Worker {
    /// Runs a worker thread. Returns when the pool stops.
    pub(super) fn run(
        shared: SharedArc<SharedPool>,
        port: &'static Port,
        index: usize,
        deque: Deque<Runnable>,
        stealers: Arc<[Stealer<Runnable>]>,
    ) {
        let seed = (index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1;
        let worker = Self {
            shared,
            port,
            index,
            deque,
            stealers,
            random: Cell::new(seed),
            runs: Cell::new(0),
            low_was_served: Cell::new(false),
            high_in_a_row: Cell::new(0),
            stole_little: Cell::new(false),
        };
        let _on_yield = budget::on_yield(Self::check_next);
        CURRENT.with(|current| current.within(Some(&worker), || worker.run_until_stopped()));
    }

    fn run_until_stopped(&self) {
        // A panic leaves the inner loop, and this loop re-enters it: cheaper than one `catch` for each run.
        while !self.shared.is_stopping() {
            self.shared.contain(|| self.work());
        }
        while self.has_work() {
            self.shared.contain(|| self.stop_all());
        }
    }

    /// Returns true if the calling thread is a worker of the pool of this port.
    #[inline]
    pub(super) fn is_current(port: &'static Port) -> bool {
        CURRENT.with(|current| {
            current.with(|worker| worker.is_some_and(|worker| worker.port.is_same_pool(port)))
        })
    }

    /// Queues work in the deque of the calling worker. Returns it if the calling thread is not a worker of
    /// this pool, or the priority is not normal.
    #[inline]
    pub(super) fn post_local(port: &'static Port, runnable: Runnable) -> Result<(), Runnable> {
        CURRENT.with(|current| {
            current.with(|worker| match worker {
                Some(worker) if ptr::eq(worker.port, port) => {
                    worker.post(runnable);
                    Ok(())
                }
                _ => Err(runnable),
            })
        })
    }

    /// Makes the calling worker check low work or work from outside before its next run: the running task
    /// yields because its budget is spent.
    fn check_next() {
        CURRENT.with(|current| {
            current.with(|worker| {
                if let Some(worker) = worker {
                    worker.runs.set(OTHERS_EACH);
                }
            });
        });
    }

    #[inline]
    fn post(&self, runnable: Runnable) {
        self.deque.push(runnable);
        if self.stealers.len() > 1 {
            self.shared.sleepers.notify();
        }
    }

    fn work(&self) {
        loop {
            let signals = self.shared.priorities.signals();
            let next = if signals.is_none() {
                self.next().or_else(|| self.search())
            } else {
                self.next_signaled(signals)
            };
            match next {
                Some(runnable) => runnable.run(),
                None => return,
            }
        }
    }

    /// Returns the next work while a signal is set. Returns `None` if the pool is being dropped.
    #[cold]
    fn next_signaled(&self, signals: PrioritySignals) -> Option<Runnable> {
        if signals.is_stopping() {
            return None;
        }
        if self.high_in_a_row.get() < HIGH_IN_A_ROW
            && let Some(runnable) = self.take_by_priority(Priority::High)
        {
            self.high_in_a_row.set(self.high_in_a_row.get() + 1);
            return Some(runnable);
        }
        self.high_in_a_row.set(0);
        self.next()
            .or_else(|| self.steal())
            .or_else(|| self.take_by_priority(Priority::Low))
            .or_else(|| self.take_by_priority(Priority::High))
            .or_else(|| self.search())
    }

    /// Returns the next work that can be had without touching the deques of other workers.
    #[inline]
    fn next(&self) -> Option<Runnable> {
        let runs = self.runs.get();
        if runs == OTHERS_EACH {
            return self.next_fair();
        }
        self.runs.set(runs + 1);
        self.deque.pop().or_else(|| self.take_injected())
    }

    /// Serves low work first; the next time it serves work from outside first.
    fn next_fair(&self) -> Option<Runnable> {
        if !self.low_was_served.replace(true)
            && let Some(runnable) = self.take_by_priority(Priority::Low)
        {
            return Some(runnable);
        }
        self.low_was_served.set(false);
        self.runs.set(0);
        self.take_injected().or_else(|| self.deque.pop())
    }

    /// Takes one piece of high or low work.
    fn take_by_priority(&self, priority: Priority) -> Option<Runnable> {
        let first = self.shared.priorities.take(priority)?;
        if !self.shared.priorities.has_none(priority) {
            // Rule 4 of the injector: for a moment other workers could not see what was left.
            self.shared.sleepers.notify();
        }
        Some(first)
    }

    /// Takes a batch from the injector. Returns the first piece and puts the others into the own deque.
    #[inline]
    fn take_injected(&self) -> Option<Runnable> {
        let mut first = None;
        let taken = self.shared.priorities.normal().take(BATCH, |runnable| match &first {
            None => first = Some(runnable),
            Some(_) => self.deque.push(runnable),
        });
        if taken > 1 {
            // Rule 4 of the injector: for a moment other workers could not see what was taken and what
            // was left.
            self.shared.sleepers.notify();
        }
        first
    }

    /// Searches and sleeps by turns until there is work. Returns `None` if the pool is being dropped.
    #[cold]
    fn search(&self) -> Option<Runnable> {
        let sleepers = &self.shared.sleepers;
        let mut permit = None;
        if self.stole_little.replace(false) {
            (0..STEAL_DELAY_SPINS).for_each(|_| hint::spin_loop());
        }
        loop {
            permit = permit.or_else(|| sleepers.search());
            let mut rounds = if permit.is_some() { SEARCH_ROUNDS } else { 1 };
            while rounds > 0 {
                if self.shared.is_stopping() {
                    return None;
                }
                if let Some(runnable) = self.find_work() {
                    self.end_search(permit);
                    return Some(runnable);
                }
                rounds -= 1;
                if rounds > 0 {
                    (0..SPINS_PER_ROUND).for_each(|_| hint::spin_loop());
                }
            }
            permit = sleepers.sleep(self.index, permit, || self.must_stay_awake());
        }
    }

    fn end_search(&self, permit: Option<Searching>) {
        if let Some(permit) = permit {
            self.shared.sleepers.found(permit, || self.has_work());
        }
    }

    /// Takes high work, then work from outside, then steals, then takes low work.
    fn find_work(&self) -> Option<Runnable> {
        self.take_by_priority(Priority::High)
            .or_else(|| self.take_injected())
            .or_else(|| self.steal())
            .or_else(|| self.take_by_priority(Priority::Low))
    }

    /// Steals from the other workers, starting with a random one.
    fn steal(&self) -> Option<Runnable> {
        let others = self.stealers.len();
        let start = self.random() as usize % others;
        (start..others).chain(0..start).filter(|other| *other != self.index).find_map(|other| {
            loop {
                match self.stealers[other].steal_batch_and_pop(&self.deque) {
                    Steal::Success(runnable) => {
                        self.stole_little.set(self.deque.len() < SMALL_STEAL);
                        return Some(runnable);
                    }
                    Steal::Empty => return None,
                    Steal::Retry => hint::spin_loop(),
                }
            }
        })
    }

    /// Returns true if any queue of the pool holds work.
    fn has_work(&self) -> bool {
        !self.shared.priorities.is_empty() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// Makes the last check before sleep.
    fn must_stay_awake(&self) -> bool {
        self.shared.is_stopping() || self.has_work()
    }

    /// Stops all queued work, also that of workers that are still busy, at the end of the pool. What those
    /// completions post comes into the own deque and is stopped too.
    fn stop_all(&self) {
        while let Some(runnable) = self.deque.pop().or_else(|| self.find_work()) {
            runnable.stop();
        }
    }

    fn random(&self) -> u32 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.set(x);
        x
    }
}
