//! One thread of a pool: where it looks for work, in which order, and when it sleeps.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::marker::PhantomData;
use core::{hint, ptr};
use std::sync::Arc;

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::Arc as SharedArc;
use crossbeam_deque::{Steal, Stealer, Worker as Deque};

use super::entrance::Entrance;
use super::priorities::Signals;
use super::priority::{HIGH_IN_A_ROW, OTHERS_EACH, Priority};
use super::shared::Shared;
use super::sleepers::Searching;

/// The most that is taken from outside at once. The rest of a batch can be stolen.
const BATCH: usize = 64;
/// How often a searching worker looks around before it sleeps, and how long it waits in between. Together a few
/// microseconds, where a wake-up costs some tens.
const ROUNDS: usize = 4;
const SPINS: usize = 16;

/// A theft that brought fewer than `MEAGRE` is a sign that the thief is faster than the one he robs. He would come for
/// every single piece, and each visit costs the other the cache line he works on; so the next theft is put off by this
/// many spins, some microseconds, where a wake-up costs some tens.
const MEAGRE: usize = 16;
const PUT_OFF: usize = 128;

pub(super) struct Worker {
    shared: SharedArc<Shared>,
    /// Through which what goes to the deque comes in: that of normal priority.
    entrance: &'static Entrance,
    index: usize,
    deque: Deque<Runnable>,
    /// Those of all workers, by index.
    stealers: Arc<[Stealer<Runnable>]>,
    /// Whom to rob first: a xorshift generator.
    random: Cell<u32>,
    /// Since the others had their turn; not counting those of high priority.
    runs: Cell<u32>,
    /// Whether the low have had theirs, and it is that of the outside.
    low_was_served: Cell<bool>,
    high_in_a_row: Cell<u32>,
    /// Whether the last theft was meagre.
    meagre: Cell<bool>,
}

thread_local! {
    /// The worker that this thread is: set while a `Here` of it lives, else null.
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// For as long as it lives, this thread is a worker; it borrows the worker, which so outlives it.
struct Here<'w>(PhantomData<&'w Worker>);

impl<'w> Here<'w> {
    fn enter(worker: &'w Worker) -> Self {
        CURRENT.set(worker);
        Self(PhantomData)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
    }
}

impl Worker {
    /// The work of a thread; it returns when the pool stops.
    pub(super) fn run(
        shared: SharedArc<Shared>,
        entrance: &'static Entrance,
        index: usize,
        deque: Deque<Runnable>,
        stealers: Arc<[Stealer<Runnable>]>,
    ) {
        let seed = (index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1;
        let worker = Self {
            shared,
            entrance,
            index,
            deque,
            stealers,
            random: Cell::new(seed),
            runs: Cell::new(0),
            low_was_served: Cell::new(false),
            high_in_a_row: Cell::new(0),
            meagre: Cell::new(false),
        };
        let _here = Here::enter(&worker);
        // A panic leaves the loop and comes back: cheaper than one `catch` per run.
        while !worker.shared.is_stopping() {
            worker.shared.contain(|| worker.work());
        }
        while worker.anything_left() {
            worker.shared.contain(|| worker.drop_all());
        }
    }

    /// Whether the caller runs on a worker of the pool that this is an entrance of.
    #[inline]
    pub(super) fn is_here(entrance: &'static Entrance) -> bool {
        // SAFETY: a `Here` on this thread's stack set the pointer to what it borrows, and takes it back when it goes.
        unsafe { CURRENT.get().as_ref() }.is_some_and(|worker| worker.entrance.is_of_the_pool_of(entrance))
    }

    /// Queues work of normal priority with the worker of its pool that the caller runs on; hands it back if there is none,
    /// or the priority is another.
    #[inline]
    pub(super) fn post_here(entrance: &'static Entrance, runnable: Runnable) -> Result<(), Runnable> {
        // SAFETY: as in `is_here`.
        match unsafe { CURRENT.get().as_ref() } {
            Some(worker) if ptr::eq(worker.entrance, entrance) => {
                worker.post(runnable);
                Ok(())
            }
            _ => Err(runnable),
        }
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
            let next =
                if signals.is_none() { self.next().or_else(|| self.search()) } else { self.attend(signals) };
            match next {
                Some(runnable) => runnable.run(),
                None => return,
            }
        }
    }

    /// There is something urgent, or the pool has ended: `None` then.
    #[cold]
    fn attend(&self, signals: Signals) -> Option<Runnable> {
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

    /// What can be had without disturbing the others.
    #[inline]
    fn next(&self) -> Option<Runnable> {
        let runs = self.runs.get();
        if runs == OTHERS_EACH {
            return self.next_of_others();
        }
        self.runs.set(runs + 1);
        self.deque.pop().or_else(|| self.take_from_outside())
    }

    /// First what is low, the next time what came from outside.
    fn next_of_others(&self) -> Option<Runnable> {
        if !self.low_was_served.replace(true)
            && let Some(runnable) = self.take_by_priority(Priority::Low)
        {
            return Some(runnable);
        }
        self.low_was_served.set(false);
        self.runs.set(0);
        self.take_from_outside().or_else(|| self.deque.pop())
    }

    /// The first piece that is high, or low.
    fn take_by_priority(&self, priority: Priority) -> Option<Runnable> {
        let first = self.shared.priorities.take(priority)?;
        if !self.shared.priorities.has_none(priority) {
            // Rule 4 of the injector: for a moment nobody could see what was left.
            self.shared.sleepers.notify();
        }
        Some(first)
    }

    /// A batch from outside: the first to be run now, the others in one's own deque.
    #[inline]
    fn take_from_outside(&self) -> Option<Runnable> {
        let mut first = None;
        let taken = self.shared.priorities.normal().take(BATCH, |runnable| match &first {
            None => first = Some(runnable),
            Some(_) => self.deque.push(runnable),
        });
        if taken > 1 {
            // Rule 4 of the injector: for a moment nobody could see what was taken and what was left.
            self.shared.sleepers.notify();
        }
        first
    }

    /// Looks around, sleeps, looks around, until there is work. `None` at the end of the pool.
    #[cold]
    fn search(&self) -> Option<Runnable> {
        let sleepers = &self.shared.sleepers;
        let mut permit = None;
        if self.meagre.replace(false) {
            (0..PUT_OFF).for_each(|_| hint::spin_loop());
        }
        loop {
            permit = permit.or_else(|| sleepers.search());
            let mut rounds = if permit.is_some() { ROUNDS } else { 1 };
            while rounds > 0 {
                if self.shared.is_stopping() {
                    return None;
                }
                if let Some(runnable) = self.look_around() {
                    self.end_search(permit);
                    return Some(runnable);
                }
                rounds -= 1;
                if rounds > 0 {
                    (0..SPINS).for_each(|_| hint::spin_loop());
                }
            }
            permit = sleepers.sleep(self.index, permit, || self.anything_for_me());
        }
    }

    fn end_search(&self, permit: Option<Searching>) {
        if let Some(permit) = permit {
            self.shared.sleepers.found(permit, || self.anything_left());
        }
    }

    /// What is urgent, then outside, then with the others, beginning anywhere; then what is low.
    fn look_around(&self) -> Option<Runnable> {
        self.take_by_priority(Priority::High)
            .or_else(|| self.take_from_outside())
            .or_else(|| self.steal())
            .or_else(|| self.take_by_priority(Priority::Low))
    }

    fn steal(&self) -> Option<Runnable> {
        let others = self.stealers.len();
        let start = self.random() as usize % others;
        (start..others).chain(0..start).filter(|other| *other != self.index).find_map(|other| {
            loop {
                match self.stealers[other].steal_batch_and_pop(&self.deque) {
                    Steal::Success(runnable) => {
                        self.meagre.set(self.deque.len() < MEAGRE);
                        return Some(runnable);
                    }
                    Steal::Empty => return None,
                    Steal::Retry => hint::spin_loop(),
                }
            }
        })
    }

    /// Whether there is a queue with work in it.
    fn anything_left(&self) -> bool {
        !self.shared.priorities.is_empty() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// The last look before sleep.
    fn anything_for_me(&self) -> bool {
        self.shared.is_stopping() || self.anything_left()
    }

    /// The end: what is still queued, here or with a neighbour who is still busy, completes as stopped. What those
    /// completions post comes back to our deque and goes the same way.
    fn drop_all(&self) {
        while let Some(runnable) = self.deque.pop().or_else(|| self.look_around()) {
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
