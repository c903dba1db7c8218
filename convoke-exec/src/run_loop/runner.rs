//! The part of a run loop that belongs to its thread. `RunLoop` uses it, and so does `sync_wait`, on a loop
//! that it borrows.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::panic::Location;
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::budget;
use convoke_core::raw::sync::atomic::{Ordering, fence};
use convoke_core::raw::sync::{thread, thread_local};
use convoke_core::raw::watching::set_aside;
use convoke_core::raw::{LocalRunQueue, OwnerId, Runnable, ScopedRef};

use super::sleeper::{GuardedSleeper, without_unwinding};
use super::{CALLS_PER_CHECK, RUNS_PER_CHECK, SharedLoop, blocked};

/// Largest number of timers that are called in one check. What they post runs before more are called, while
/// it is in the cache.
const TIMERS_PER_CHECK: usize = 61;

/// The local queue of a loop: work that was taken from the inbox, or posted by the loop's own work.
pub struct Runner {
    waiting: LocalRunQueue,
    /// The owner thread of the tasks of the loop that runs with this queue. `NOBODY` before the first run, and if the loop
    /// has none.
    owner: Cell<OwnerId>,
    /// Number of runs left before the next check of inbox, timers and sleeper.
    runs_left: Cell<u32>,
    /// Number of calls on sources left before the next check.
    calls_left: Cell<u32>,
    /// Work that was queued when the running task spent its budget. All that is in `waiting` then, as the task itself,
    /// was queued later, and runs behind the work that the next check finds.
    ahead: LocalRunQueue,
    /// Set if the task that ran last has spent its budget.
    has_yielded: Cell<bool>,
    /// Set if durations were armed that start before the next run. `runs_left` is zero then, and this is its value.
    runs_left_unsettled: Cell<Option<u32>>,
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
    static RUNNING: Running = Running { shared: ScopedRef::new(), runner: ScopedRef::new() };
}

/// The innermost loop that a thread runs: both references are set, or none.
struct Running {
    shared: ScopedRef<SharedLoop>,
    runner: ScopedRef<Runner>,
}

impl Running {
    /// Calls `f` with both, if this thread runs a loop.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&SharedLoop, &Runner) -> R) -> Option<R> {
        self.shared.with(|shared| self.runner.with(|runner| Some(f(shared?, runner?))))
    }
}

impl Runner {
    /// Creates a runner with an empty queue.
    pub fn new() -> Self {
        Self {
            waiting: LocalRunQueue::new(),
            owner: Cell::new(OwnerId::NOBODY),
            runs_left: Cell::new(RUNS_PER_CHECK),
            calls_left: Cell::new(CALLS_PER_CHECK),
            ahead: LocalRunQueue::new(),
            has_yielded: Cell::new(false),
            runs_left_unsettled: Cell::new(None),
        }
    }

    /// Returns true if this thread runs that loop, and it is the innermost one.
    pub(super) fn is_running(shared: &SharedLoop) -> bool {
        RUNNING.with(|running| running.shared.is(shared))
    }

    /// Queues work that the loop's own work posts, without an atomic operation. Returns it if this thread
    /// does not run that loop.
    #[inline]
    pub(super) fn post_local(shared: &SharedLoop, runnable: Runnable) -> Result<(), Runnable> {
        RUNNING.with(|running| {
            running.runner.with(|runner| match runner {
                Some(runner) if running.shared.is(shared) => {
                    runner.push(runnable);
                    Ok(())
                }
                _ => Err(runnable),
            })
        })
    }

    /// Calls `f` with the runner of the loop that this thread runs, if it runs one.
    #[inline]
    pub fn current<R>(f: impl FnOnce(&Self) -> R) -> Option<R> {
        RUNNING.with(|running| running.runner.with(|runner| runner.map(f)))
    }

    /// Returns the owner thread of the tasks of the loop, or `NOBODY`: then it is that of no task.
    #[inline]
    pub fn owner(&self) -> OwnerId {
        self.owner.get()
    }

    /// Makes the loop that this thread runs start the durations that were armed, before its next run.
    #[inline]
    pub(super) fn settle_next() {
        RUNNING.with(|running| {
            running.with(|_, runner| {
                if runner.runs_left_unsettled.get().is_none() {
                    runner.runs_left_unsettled.set(Some(runner.runs_left.replace(0)));
                }
            });
        });
    }

    /// Makes the loop check inbox, timers and sleeper before its next run.
    #[inline]
    fn check_next(&self) {
        self.runs_left.set(0);
        self.runs_left_unsettled.set(None);
    }

    /// Makes the loop that this thread runs, if any, check before its next run, and run what the check finds before the
    /// running task, which yields.
    fn yield_running() {
        RUNNING.with(|running| {
            running.with(|_, runner| {
                runner.ahead.append(runner.waiting.take_all());
                runner.has_yielded.set(true);
                runner.check_next();
            });
        });
    }

    /// Counts a call on a source. After [`CALLS_PER_CHECK`] of them, of all tasks together, the loop that this
    /// thread runs checks inbox, timers and sleeper before its next run.
    #[inline]
    pub(super) fn count_call() {
        RUNNING.with(|running| {
            running.with(|_, runner| {
                let left = runner.calls_left.get().saturating_sub(1);
                runner.calls_left.set(left);
                if left == 0 {
                    runner.check_next();
                }
            });
        });
    }

    /// Calls `f` as a piece of work of the loop is called: this thread runs the loop meanwhile.
    fn enter<R>(&self, shared: &SharedLoop, f: impl FnOnce() -> R) -> R {
        if shared.sleeper().is_none() {
            // To be unparked. A sleeper is woken by its own means.
            *shared.lock_runner() = Some(thread::current());
        }
        self.owner.set(shared.owner_id);
        let _set_aside = set_aside();
        let _on_yield = budget::on_yield(Self::yield_running);
        // SAFETY: only the thread that created a loop with an owner runs it: a `RunLoop` is not `Send`, and the
        // loop of a `sync_wait` lies in its stack frame. An `EmbeddedLoop` has no owner.
        let _on_owner = shared.owner.as_ref().map(|owner| unsafe { owner.enter() });
        let _take_posts = TakePosts;
        RUNNING.with(|running| running.shared.within(Some(shared), || running.runner.within(Some(self), f)))
    }

    /// Adds work to the local queue.
    #[inline]
    pub fn push(&self, runnable: Runnable) {
        self.waiting.push(runnable);
    }

    /// Runs until `finish` was called and the queue is empty. Returns the number of pieces.
    #[track_caller]
    pub(super) fn run(&self, shared: &SharedLoop) -> usize {
        let place = Location::caller();
        self.enter(shared, || {
            let mut ran = 0;
            loop {
                // Before the queue is emptied: work that was posted before `finish` is then found in it.
                let finished = shared.finished.load(Ordering::Acquire);
                while let Some(runnable) = self.next(shared) {
                    runnable.run();
                    ran += 1;
                }
                if finished {
                    return ran;
                }
                if !shared.finished.load(Ordering::Acquire) {
                    sleep(shared, None, place);
                }
            }
        })
    }

    /// Runs and sleeps while `goes_on` returns true, and until the clock reaches `until`.
    #[track_caller]
    pub(super) fn run_while(
        &self,
        shared: &SharedLoop,
        until: Option<Instant>,
        mut goes_on: impl FnMut(Moment) -> bool,
    ) {
        let place = Location::caller();
        let is_over = || until.is_some_and(|until| shared.now() >= until);
        self.enter(shared, || {
            while !is_over() && goes_on(Moment::Next) {
                match self.next(shared) {
                    Some(runnable) => runnable.run(),
                    None if goes_on(Moment::Idle) => sleep(shared, until, place),
                    None => return,
                }
            }
        });
    }

    /// Returns true if the local queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.ahead.is_empty()
    }

    /// Marks the loop as asleep, unless there is work to run: see [`RunLoop::doze`](super::RunLoop::doze).
    pub(super) fn doze(&self, shared: &SharedLoop) -> bool {
        let dozes = self.is_empty() && shared.inbox.fall_asleep();
        // Pairs with the fence in `arm`, as in `sleep`: either the caller sees the timer in the time that it
        // asks for next, or `arm` sees that the loop is asleep and wakes it.
        fence(Ordering::SeqCst);
        dozes
    }

    /// Runs until nothing is queued, or `most` pieces have run. Returns the number of pieces.
    pub(super) fn run_ready(&self, shared: &SharedLoop, most: usize) -> usize {
        self.enter(shared, || core::iter::from_fn(|| self.next(shared).map(Runnable::run)).take(most).count())
    }

    /// Calls `f` as a piece of work is called.
    #[cfg(feature = "testing")]
    pub(super) fn within<R>(&self, shared: &SharedLoop, f: impl FnOnce() -> R) -> R {
        self.enter(shared, f)
    }

    /// Calls `f` as a piece of work is called, and then stops all queued work.
    #[cfg(feature = "testing")]
    pub(super) fn stop_unrun(&self, shared: &SharedLoop, f: impl FnOnce()) {
        self.enter(shared, || {
            f();
            loop {
                self.waiting.append(shared.inbox.take());
                if self.is_empty() {
                    return;
                }
                self.clear();
            }
        });
    }

    /// Runs until `done` returns true; it is called after each piece of work. Catches the panics of work, and
    /// returns the first one. It never unwinds: queued work points into the stack frame of the caller.
    #[track_caller]
    pub fn run_until_done(&self, shared: &SharedLoop, done: impl Fn() -> bool) -> Option<Panic> {
        let place = Location::caller();
        without_unwinding("a run loop inside `sync_wait`", || {
            self.enter(shared, || {
                let mut first_panic = None;
                while !done() {
                    match self.next(shared) {
                        Some(runnable) => {
                            if let Err(panic) = Panic::catch(|| runnable.run()) {
                                first_panic.get_or_insert(panic);
                            }
                        }
                        None => sleep(shared, None, place),
                    }
                }
                first_panic
            })
        })
    }

    /// Stops all work in the local queue.
    pub(super) fn clear(&self) {
        // Stopped work may post to this queue, so repeat until it stays empty.
        while !self.is_empty() {
            drop(self.ahead.take_all());
            drop(self.waiting.take_all());
        }
    }

    #[inline]
    fn next(&self, shared: &SharedLoop) -> Option<Runnable> {
        let runs_left = self.runs_left.get();
        if runs_left > 0
            && let Some(runnable) = self.waiting.pop()
        {
            self.runs_left.set(runs_left - 1);
            return Some(runnable);
        }
        self.next_after_check(shared)
    }

    /// Starts durations, takes the inbox, calls due timers, and returns the next work. Out of line, to keep the path of work
    /// that is already queued short.
    #[inline(never)]
    fn next_after_check(&self, shared: &SharedLoop) -> Option<Runnable> {
        let unsettled = self.runs_left_unsettled.take();
        let runs_left = unsettled.unwrap_or(self.runs_left.get());
        if unsettled.is_some() {
            shared.timers.settle(|| shared.now());
            if runs_left > 0
                && let Some(runnable) = self.waiting.pop()
            {
                self.runs_left.set(runs_left - 1);
                return Some(runnable);
            }
        }
        let behind = self.has_yielded.take().then(|| {
            let behind = self.waiting.take_all();
            self.waiting.append(self.ahead.take_all());
            behind
        });
        self.calls_left.set(CALLS_PER_CHECK);
        self.waiting.append(shared.inbox.take());
        if !shared.timers.is_empty() {
            shared.timers.call_some_due(shared.now(), TIMERS_PER_CHECK);
        }
        let Some(sleeper) = shared.sleeper() else {
            self.waiting.append(behind.unwrap_or_default());
            self.runs_left.set(RUNS_PER_CHECK - 1);
            return self.waiting.pop();
        };
        if runs_left == 0 {
            sleeper.check();
        }
        self.waiting.append(behind.unwrap_or_default());
        self.next_chosen(sleeper)
    }

    fn next_chosen(&self, sleeper: &GuardedSleeper) -> Option<Runnable> {
        // If there is no work the loop sleeps now, and a sleep is a check too.
        self.runs_left.set(sleeper.runs_per_check().saturating_sub(1));
        let queued = self.waiting.len();
        let chosen = if queued > 1 { sleeper.choose(queued) } else { 0 };
        self.waiting.take(chosen)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // The panic hook has reported the panic of a completion already. The caller still needs the loop
        // back.
        let _ = Panic::catch(|| self.clear());
    }
}

/// Sleeps until work is posted, a timer is due, or the clock reaches `limit`. `place` is where the program runs the loop.
fn sleep(shared: &SharedLoop, limit: Option<Instant>, place: &'static Location<'static>) {
    let earlier = |at: Option<Instant>| at.into_iter().chain(limit).min();
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
        let until = earlier(if sleeper.jumps() { shared.earliest() } else { shared.next_timer_check() });
        if until.is_none() && !sleeper.jumps() && blocked::is_inside_a_task() {
            sleep_inside_a_task(sleeper, place);
        } else {
            sleeper.sleep(until);
        }
        shared.inbox.wake_up();
        return;
    }
    let mut report_at = blocked::is_inside_a_task().then(|| Instant::now() + blocked::REPORT_AFTER);
    while shared.inbox.is_asleep() {
        let Some(at) = earlier(shared.next_timer_check()) else {
            match report_at.map(|at| at.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if left.is_zero() => {
                    blocked::report(place);
                    report_at = None;
                }
                Some(left) => thread::park_timeout(left),
            }
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

/// Sleeps without a timer to wait for, in a loop that runs inside a task. Returns early, and reports the loop, if nothing
/// happens.
fn sleep_inside_a_task(sleeper: &GuardedSleeper, place: &'static Location<'static>) {
    let report_at = sleeper.now() + blocked::REPORT_AFTER;
    sleeper.sleep(Some(report_at));
    let has_work = RUNNING.with(|running| running.with(|_, runner| !runner.is_empty())) == Some(true);
    if !has_work && sleeper.now() >= report_at {
        blocked::report(place);
    }
}

/// Takes the inbox of the outer loop when an inner one ends. Work that was posted to the outer loop from
/// inside the inner one is in its inbox. It is queued before what the outer loop's own work will post from
/// here on, so that the posts of one thread run in order.
struct TakePosts;

impl Drop for TakePosts {
    fn drop(&mut self) {
        // This thread runs the outer loop, so it is the taker of its inbox. That may be marked as asleep, as
        // a sleeper may run loops inside its sleep.
        RUNNING.with(|outer| outer.with(|shared, runner| runner.waiting.append(shared.inbox.take())));
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
