//! The side of a run loop that runs: used by `RunLoop`, and by `sync_wait` on a loop that is lent to it.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{Ordering, fence};
use convoke_core::raw::sync::{thread, thread_local};
use convoke_core::raw::{OnOwnerThread, OwnerId, RunQueue, Runnable};

use super::sleeper::{Guarded, without_unwinding};
use super::{LOOK_EACH, Shared};
use convoke_core::raw::watching::{SetAside, set_aside};

/// So many timers are called in one look: what they post is run before more are called, while it is at hand.
const TIMERS_EACH: usize = 61;

/// What is to be run next: taken from the inbox, or posted by the loop's own work. Not shared: one thread runs a loop.
pub struct Runner {
    /// Used by `queue` alone.
    waiting: UnsafeCell<RunQueue>,
    /// How many more are run before a look.
    runs: Cell<u32>,
}

/// What a loop is about to do, when it is asked whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Run a piece of work, if there is one.
    Next,
    /// Sleep: there is none.
    Idle,
}

thread_local! {
    /// The loop that this thread is running, and who runs it; or nulls. Both outlive the `Entered` that set them.
    static RUNNING: Cell<(*const Shared, *const Runner)> = Cell::new((ptr::null(), ptr::null()));
}

impl Runner {
    /// Creates a runner with an empty queue.
    pub fn new() -> Self {
        Self { waiting: UnsafeCell::new(RunQueue::new()), runs: Cell::new(LOOK_EACH) }
    }

    /// Does something with the queue.
    ///
    /// # Safety
    /// Nothing in `f` comes back here: it calls no code of others.
    #[inline]
    unsafe fn queue<R>(&self, f: impl FnOnce(&mut RunQueue) -> R) -> R {
        // SAFETY: we are not shared, and the caller's: this is the only reference.
        f(unsafe { &mut *self.waiting.get() })
    }

    /// Whether this thread runs that loop now.
    pub(super) fn is_running(shared: &Shared) -> bool {
        RUNNING.with(|running| ptr::eq(running.get().0, shared))
    }

    /// Queues work that the loop's own work posts, without an atomic operation. Handed back if this thread does not run
    /// that loop.
    #[inline]
    pub(super) fn post_here(shared: &Shared, runnable: Runnable) -> Result<(), Runnable> {
        let (running, runner) = RUNNING.with(Cell::get);
        if !ptr::eq(running, shared) {
            return Err(runnable);
        }
        // SAFETY: `Entered` on this thread's stack set the pointer, and takes it back before the runner goes.
        unsafe { &*runner }.push(runnable);
        Ok(())
    }

    /// Calls `f` with whoever runs the loop that this thread is in, and the home of its tasks, if it has one.
    #[inline]
    pub fn current<R>(f: impl FnOnce(&Self, OwnerId) -> R) -> Option<R> {
        let (shared, runner) = RUNNING.with(Cell::get);
        // SAFETY: as in `post_here`, both or none; the references do not leave this function.
        let (home, runner) = unsafe { (shared.as_ref()?.home.id(), &*runner) };
        (home != OwnerId::NONE).then(|| f(runner, home))
    }

    /// Has the loop that this thread is in look before it runs the next piece of work, if it is in one.
    pub(super) fn look_next() {
        let (_, runner) = RUNNING.with(Cell::get);
        // SAFETY: as in `post_here`; the reference does not leave this function.
        if let Some(runner) = unsafe { runner.as_ref() } {
            runner.runs.set(0);
        }
    }

    /// Queues what its own work posts. Nothing else happens.
    #[inline]
    pub fn push(&self, runnable: Runnable) {
        // SAFETY: pushing calls nobody.
        unsafe { self.queue(|queue| queue.push(runnable)) };
    }

    /// Runs until the loop was told to finish and is empty.
    pub(super) fn run(&self, shared: &Shared) {
        let _entered = Entered::new(self, shared);
        loop {
            while let Some(runnable) = self.next(shared) {
                runnable.run();
            }
            if shared.finished.load(Ordering::Acquire) {
                return;
            }
            sleep(shared);
        }
    }

    /// Runs and sleeps for as long as `goes_on` says so.
    pub(super) fn run_while(&self, shared: &Shared, mut goes_on: impl FnMut(Moment) -> bool) {
        let _entered = Entered::new(self, shared);
        while goes_on(Moment::Next) {
            match self.next(shared) {
                Some(runnable) => runnable.run(),
                None if goes_on(Moment::Idle) => sleep(shared),
                None => return,
            }
        }
    }

    /// Whether nothing was taken that is not run yet.
    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: a look.
        unsafe { self.queue(|queue| queue.is_empty()) }
    }

    /// Runs until nothing is queued; says how many pieces.
    pub(super) fn run_ready(&self, shared: &Shared) -> usize {
        let _entered = Entered::new(self, shared);
        core::iter::from_fn(|| self.next(shared).map(Runnable::run)).count()
    }

    pub(super) fn run_one(&self, shared: &Shared) -> bool {
        let _entered = Entered::new(self, shared);
        self.next(shared).map(Runnable::run).is_some()
    }

    /// Calls `f` as a piece of work is called.
    #[cfg(feature = "testing")]
    pub(super) fn within<R>(&self, shared: &Shared, f: impl FnOnce() -> R) -> R {
        let _entered = Entered::new(self, shared);
        f()
    }

    /// Calls `f` as a piece of work is called, and stops what is queued.
    #[cfg(feature = "testing")]
    pub(super) fn stop_unrun(&self, shared: &Shared, f: impl FnOnce()) {
        let _entered = Entered::new(self, shared);
        f();
        loop {
            let mut taken = shared.inbox.take();
            // SAFETY: nobody is called.
            unsafe { self.queue(|queue| queue.append(&mut taken)) };
            if self.is_empty() {
                return;
            }
            self.clear();
        }
    }

    /// Runs until `done` says so; it is asked after each piece of work. A panic of a piece of work is kept, and the first is
    /// returned. This never unwinds: queued work points into the stack of whoever waits.
    pub fn run_until(&self, shared: &Shared, done: impl Fn() -> bool) -> Option<Panic> {
        without_unwinding("a run loop that somebody waits for", || {
            let _entered = Entered::new(self, shared);
            let mut first_panic = None;
            while !done() {
                match self.next(shared) {
                    Some(runnable) => {
                        if let Err(panic) = Panic::catch(|| runnable.run()) {
                            first_panic.get_or_insert(panic);
                        }
                    }
                    None => sleep(shared),
                }
            }
            first_panic
        })
    }

    /// Stops what was taken and not run.
    pub(super) fn clear(&self) {
        // What is stopped may post: to us, until all that was there is stopped.
        while !self.is_empty() {
            // SAFETY: taking all of it calls nobody.
            drop(unsafe { self.queue(core::mem::take) });
        }
    }

    #[inline]
    fn next(&self, shared: &Shared) -> Option<Runnable> {
        let runs = self.runs.get();
        if runs > 0
            // SAFETY: taking out calls nobody.
            && let Some(runnable) = unsafe { self.queue(RunQueue::pop) }
        {
            self.runs.set(runs - 1);
            return Some(runnable);
        }
        self.next_after_a_look(shared, runs == 0)
    }

    /// Looks into the inbox, and calls the timers that are due, which post. Out of line: the way of work that is queued
    /// already is short.
    #[inline(never)]
    fn next_after_a_look(&self, shared: &Shared, sleeper_looks: bool) -> Option<Runnable> {
        let mut taken = shared.inbox.take();
        // SAFETY: nobody is called.
        unsafe { self.queue(|queue| queue.append(&mut taken)) };
        if !shared.timers.is_empty() {
            shared.timers.call_some_due(shared.now(), TIMERS_EACH);
        }
        let Some(sleeper) = shared.sleeper() else {
            self.runs.set(LOOK_EACH - 1);
            // SAFETY: nobody is called.
            return unsafe { self.queue(RunQueue::pop) };
        };
        if sleeper_looks {
            sleeper.look();
        }
        self.next_chosen(sleeper)
    }

    fn next_chosen(&self, sleeper: &Guarded) -> Option<Runnable> {
        // A sleep, which comes now if there is nothing, is a look too.
        self.runs.set(sleeper.look_each().saturating_sub(1));
        // SAFETY: a look. Whoever chooses is called outside.
        let queued = unsafe { self.queue(|queue| queue.len()) };
        let chosen = if queued > 1 { sleeper.choose(queued) } else { 0 };
        // SAFETY: nobody is called.
        unsafe { self.queue(|queue| queue.take(chosen)) }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // What a completion throws has been reported by the panic hook; a loop that is waited on still has to be given back.
        let _ = Panic::catch(|| self.clear());
    }
}

/// Sleeps until something was posted or a timer is due.
fn sleep(shared: &Shared) {
    // This loop may run inside of a destructor, and wait for work that was refused further up.
    if Runnable::stop_deferred() {
        return;
    }
    if !shared.inbox.fall_asleep() {
        return;
    }
    // With the fence in `arm`.
    fence(Ordering::SeqCst);
    if let Some(sleeper) = shared.sleeper() {
        sleeper.sleep(if sleeper.jumps() { shared.earliest() } else { shared.next_look() });
        shared.inbox.wake_up();
        return;
    }
    while shared.inbox.is_asleep() {
        let Some(at) = shared.next_look() else {
            thread::park();
            continue;
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            shared.inbox.wake_up();
            return;
        }
        thread::park_timeout(left);
    }
}

/// Marks this thread as the one that runs the loop, until it is dropped.
struct Entered<'a> {
    before: (*const Shared, *const Runner),
    _home: OnOwnerThread<'a>,
    _around: SetAside,
}

impl<'a> Entered<'a> {
    fn new(runner: &Runner, shared: &'a Shared) -> Self {
        *shared.lock_runner() = Some(thread::current());
        // SAFETY: one thread runs a loop, the one that made it: a `RunLoop` is not `Send`, and that of a `sync_wait` is on
        // its stack.
        let home = unsafe { shared.home.enter() };
        Self {
            before: RUNNING.with(|running| running.replace((shared, runner))),
            _home: home,
            _around: set_aside(),
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        RUNNING.with(|running| running.set(self.before));
        let (shared, runner) = self.before;
        if !shared.is_null() {
            // What was posted to the outer loop from inside the inner one is in its inbox. It comes before what its own
            // work will post from here on: the posts of one thread run in their order.
            // SAFETY: the outer `Entered` is further up this thread's stack, and so are what it points to. This thread
            // runs the outer loop: it is its taker. It may be asleep, for a sleeper may run loops inside of its sleep.
            unsafe {
                let mut taken = (*shared).inbox.take();
                (*runner).queue(|queue| queue.append(&mut taken));
            }
        }
    }
}

impl core::fmt::Debug for Runner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}
