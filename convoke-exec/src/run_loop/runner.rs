//! The part of a run loop that belongs to its thread. `RunLoop` uses it, and so does `sync_wait`, on a loop
//! that it borrows.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::budget::{self, OnYield};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{Ordering, fence};
use convoke_core::raw::sync::{thread, thread_local};
use convoke_core::raw::{OnOwnerThread, OwnerId, RunQueue, Runnable};

use super::sleeper::{GuardedSleeper, without_unwinding};
use super::{CALLS_PER_CHECK, LOOK_EACH, Shared};
use convoke_core::raw::watching::{SetAside, set_aside};

/// Largest number of timers that are called in one check. What they post runs before more are called, while
/// it is in the cache.
const TIMERS_PER_CHECK: usize = 61;

/// The local queue of a loop: work that was taken from the inbox, or posted by the loop's own work.
///
/// Rule 1: only the thread of the loop touches it; the type is not `Sync`. Rule 2: a reference to the queue
/// exists only inside `queue`, whose closure runs no user code, so there is never a second one.
pub struct Runner {
    /// Accessed only in `queue`.
    waiting: UnsafeCell<RunQueue>,
    /// Number of runs left before the next check of inbox, timers and sleeper.
    runs_left: Cell<u32>,
    /// Number of calls on sources left before the next check.
    calls_left: Cell<u32>,
}

/// The point at which a loop asks whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before it runs a piece of work, if there is one.
    Next,
    /// Before it sleeps, as there is no work.
    Idle,
}

thread_local! {
    /// The innermost loop that this thread runs, and its runner; or nulls. Both outlive the `Entered` that
    /// set them.
    static RUNNING: Cell<(*const Shared, *const Runner)> = Cell::new((ptr::null(), ptr::null()));
}

impl Runner {
    /// Creates a runner with an empty queue.
    pub fn new() -> Self {
        Self {
            waiting: UnsafeCell::new(RunQueue::new()),
            runs_left: Cell::new(LOOK_EACH),
            calls_left: Cell::new(CALLS_PER_CHECK),
        }
    }

    /// Calls `f` with the local queue.
    ///
    /// # Safety
    /// `f` runs no user code, so it cannot come back here.
    #[inline]
    unsafe fn queue<R>(&self, f: impl FnOnce(&mut RunQueue) -> R) -> R {
        // SAFETY: rule 1: no other thread is here. Rule 2: `f` does not come back here, as the caller
        // promises.
        f(unsafe { &mut *self.waiting.get() })
    }

    /// Returns true if this thread runs that loop, and it is the innermost one.
    pub(super) fn is_running(shared: &Shared) -> bool {
        RUNNING.with(|running| ptr::eq(running.get().0, shared))
    }

    /// Queues work that the loop's own work posts, without an atomic operation. Returns it if this thread
    /// does not run that loop.
    #[inline]
    pub(super) fn post_local(shared: &Shared, runnable: Runnable) -> Result<(), Runnable> {
        let (running, runner) = RUNNING.with(Cell::get);
        if !ptr::eq(running, shared) {
            return Err(runnable);
        }
        // SAFETY: an `Entered` on this thread's stack set the pointer, and resets it before the runner is
        // dropped.
        unsafe { &*runner }.push(runnable);
        Ok(())
    }

    /// Calls `f` with the runner of the loop that this thread runs and the owner thread of its tasks, if
    /// there are both.
    #[inline]
    pub fn current<R>(f: impl FnOnce(&Self, OwnerId) -> R) -> Option<R> {
        let (shared, runner) = RUNNING.with(Cell::get);
        // SAFETY: an `Entered` on this thread's stack set both pointers, and resets them before runner and
        // loop are dropped. The references do not leave this function.
        let (owner, runner) = unsafe { (shared.as_ref()?.owner.id(), &*runner) };
        (owner != OwnerId::NONE).then(|| f(runner, owner))
    }

    /// Makes the loop that this thread runs, if any, check inbox, timers and sleeper before its next run.
    fn check_next() {
        Self::with_innermost(|runner| runner.runs_left.set(0));
    }

    /// Counts a call on a source. After [`CALLS_PER_CHECK`] of them, of all tasks together, the loop that this
    /// thread runs checks inbox, timers and sleeper before its next run.
    #[inline]
    pub(super) fn count_call() {
        Self::with_innermost(|runner| {
            let left = runner.calls_left.get().saturating_sub(1);
            runner.calls_left.set(left);
            if left == 0 {
                runner.runs_left.set(0);
            }
        });
    }

    /// Calls `f` with the runner of the innermost loop that this thread runs, if there is one.
    #[inline]
    fn with_innermost(f: impl FnOnce(&Self)) {
        let (_, runner) = RUNNING.with(Cell::get);
        // SAFETY: an `Entered` on this thread's stack set the pointer, and resets it before the runner is
        // dropped. The reference does not leave this function.
        if let Some(runner) = unsafe { runner.as_ref() } {
            f(runner);
        }
    }

    /// Adds work to the local queue.
    #[inline]
    pub fn push(&self, runnable: Runnable) {
        // SAFETY: `push` of a queue runs no user code.
        unsafe { self.queue(|queue| queue.push(runnable)) };
    }

    /// Runs until `finish` was called and the queue is empty.
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

    /// Runs and sleeps while `goes_on` returns true.
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

    /// Returns true if the local queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: `is_empty` runs no user code.
        unsafe { self.queue(|queue| queue.is_empty()) }
    }

    /// Runs until nothing is queued. Returns the number of pieces.
    pub(super) fn run_ready(&self, shared: &Shared) -> usize {
        let _entered = Entered::new(self, shared);
        core::iter::from_fn(|| self.next(shared).map(Runnable::run)).count()
    }

    /// Runs one piece of work. Returns false if there is none.
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

    /// Calls `f` as a piece of work is called, and then stops all queued work.
    #[cfg(feature = "testing")]
    pub(super) fn stop_unrun(&self, shared: &Shared, f: impl FnOnce()) {
        let _entered = Entered::new(self, shared);
        f();
        loop {
            let mut taken = shared.inbox.take();
            // SAFETY: `append` runs no user code.
            unsafe { self.queue(|queue| queue.append(&mut taken)) };
            if self.is_empty() {
                return;
            }
            self.clear();
        }
    }

    /// Runs until `done` returns true; it is called after each piece of work. Catches the panics of work, and
    /// returns the first one. It never unwinds: queued work points into the stack frame of the caller.
    pub fn run_until(&self, shared: &Shared, done: impl Fn() -> bool) -> Option<Panic> {
        without_unwinding("a run loop inside `sync_wait`", || {
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

    /// Stops all work in the local queue.
    pub(super) fn clear(&self) {
        // Stopped work may post to this queue, so repeat until it stays empty.
        while !self.is_empty() {
            // SAFETY: `take` moves the queue out and runs no user code; the queue is dropped outside of
            // `queue`.
            drop(unsafe { self.queue(core::mem::take) });
        }
    }

    #[inline]
    fn next(&self, shared: &Shared) -> Option<Runnable> {
        let runs_left = self.runs_left.get();
        if runs_left > 0
            // SAFETY: `pop` runs no user code.
            && let Some(runnable) = unsafe { self.queue(RunQueue::pop) }
        {
            self.runs_left.set(runs_left - 1);
            return Some(runnable);
        }
        self.next_after_check(shared, runs_left == 0)
    }

    /// Takes the inbox, calls due timers, and returns the next work. Out of line, to keep the path of work
    /// that is already queued short.
    #[inline(never)]
    fn next_after_check(&self, shared: &Shared, check_sleeper: bool) -> Option<Runnable> {
        self.calls_left.set(CALLS_PER_CHECK);
        let mut taken = shared.inbox.take();
        // SAFETY: `append` runs no user code.
        unsafe { self.queue(|queue| queue.append(&mut taken)) };
        if !shared.timers.is_empty() {
            shared.timers.call_some_due(shared.now(), TIMERS_PER_CHECK);
        }
        let Some(sleeper) = shared.sleeper() else {
            self.runs_left.set(LOOK_EACH - 1);
            // SAFETY: `pop` runs no user code.
            return unsafe { self.queue(RunQueue::pop) };
        };
        if check_sleeper {
            sleeper.look();
        }
        self.next_chosen(sleeper)
    }

    fn next_chosen(&self, sleeper: &GuardedSleeper) -> Option<Runnable> {
        // If there is no work the loop sleeps now, and a sleep is a check too.
        self.runs_left.set(sleeper.look_each().saturating_sub(1));
        // SAFETY: `len` runs no user code. The sleeper, which is user code, is called outside of `queue`.
        let queued = unsafe { self.queue(|queue| queue.len()) };
        let chosen = if queued > 1 { sleeper.choose(queued) } else { 0 };
        // SAFETY: `take` runs no user code.
        unsafe { self.queue(|queue| queue.take(chosen)) }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // The panic hook has reported the panic of a completion already. The caller still needs the loop
        // back.
        let _ = Panic::catch(|| self.clear());
    }
}

/// Sleeps until work is posted or a timer is due.
fn sleep(shared: &Shared) {
    // This loop may run inside a destructor, and wait for work that was refused further up on the stack.
    if Runnable::stop_deferred() {
        return;
    }
    if !shared.inbox.fall_asleep() {
        return;
    }
    // Pairs with the fence in `arm`.
    fence(Ordering::SeqCst);
    if let Some(sleeper) = shared.sleeper() {
        sleeper.sleep(if sleeper.jumps() { shared.earliest() } else { shared.next_timer_check() });
        shared.inbox.wake_up();
        return;
    }
    while shared.inbox.is_asleep() {
        let Some(at) = shared.next_timer_check() else {
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

/// Marks this thread as the one that runs the loop, while it exists.
struct Entered<'a> {
    outer: (*const Shared, *const Runner),
    _on_owner: OnOwnerThread<'a>,
    _set_aside: SetAside,
    _on_yield: OnYield,
}

impl<'a> Entered<'a> {
    fn new(runner: &Runner, shared: &'a Shared) -> Self {
        *shared.lock_runner() = Some(thread::current());
        // SAFETY: only the thread that created a loop runs it: a `RunLoop` is not `Send`, and the loop of a
        // `sync_wait` lies in its stack frame.
        let on_owner = unsafe { shared.owner.enter() };
        Self {
            outer: RUNNING.with(|running| running.replace((shared, runner))),
            _on_owner: on_owner,
            _set_aside: set_aside(),
            _on_yield: budget::on_yield(Runner::check_next),
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        RUNNING.with(|running| running.set(self.outer));
        let (shared, runner) = self.outer;
        if !shared.is_null() {
            // Work that was posted to the outer loop from inside the inner one is in its inbox. Queue it
            // before what the outer loop's own work will post from here on, so that the posts of one
            // thread run in order.
            // SAFETY: the outer `Entered` is further up on this thread's stack, so what it points to is
            // alive. This thread runs the outer loop, so it is the taker of its inbox. That may be marked
            // as asleep, as a sleeper may run loops inside its sleep. `append` runs no user code.
            unsafe {
                let mut taken = (*shared).inbox.take();
                (*runner).queue(|queue| queue.append(&mut taken));
            }
        }
    }
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Runner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}
