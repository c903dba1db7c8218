//! The run loop: a queue and the thread that runs it.
//!
//! The *shared* part can be reached from any thread, through the executor: the inbox, the timers, the owner
//! thread of the loop's tasks. The *runner* belongs to the loop's thread: a local queue, which needs no
//! atomic operation. A post from the loop's own work goes to the runner, any other post to the inbox, and
//! wakes the thread if it sleeps. The runner *checks* after [`RUNS_PER_CHECK`] runs, after [`CALLS_PER_CHECK`] calls
//! on sources, after a run that has yielded because its budget was spent, and before it sleeps: it takes the
//! inbox, calls due timers, and lets the *sleeper*, if there is one, poll its I/O.
//!
//! | module | contents |
//! | --- | --- |
//! | `runner` | the local queue, and running it; `sync_wait` uses it too |
//! | `sleeper` | the trait by which an I/O driver replaces parking |

#![allow(unsafe_code)]

mod runner;
mod sleeper;

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use convoke_core::raw::sync::{Arc, Mutex, MutexGuard, UnsafeCell, thread};
use convoke_core::raw::{ArmedTimer, Header, IdleTimer, OwnerThread, Runnable, Timers, WorkKind};
use convoke_core::{Executor, Panic};

use crate::inbox::{Inbox, Pushed};
use crate::time::queue::{AfterArm, TimerQueue};
use convoke_core::raw::{contain, report_panic};
pub use runner::Moment;
pub use runner::Runner;
use sleeper::GuardedSleeper;
pub use sleeper::{CALLS_PER_CHECK, RUNS_PER_CHECK, Sleeper, count_call};

/// An executor that runs its work on the thread that calls [`run`](RunLoop::run). Other threads post to it
/// through its [`executor`](RunLoop::executor).
///
/// It never spins. It makes a system call only to sleep, and a poster only to wake it. Dropping the loop
/// stops all work that is still queued; work that is posted later is stopped too. It has its own timers: the
/// loop's thread calls work that waits for a time.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::executor::RunLoop;
///
/// let run_loop = RunLoop::new();
/// let executor = run_loop.executor();
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let on_loop = schedule(&executor).then(|()| std::thread::current().id());
///         assert_ne!(sync_wait(on_loop).unwrap(), std::thread::current().id());
///         executor.finish();
///     });
///     run_loop.run();
/// });
/// ```
pub struct RunLoop {
    executor: RunLoopExecutor,
    runner: Runner,
    /// The loop stays on the thread that created it, so that tasks that are not `Send` may live here.
    _not_send: PhantomData<*mut ()>,
}

/// Executor of a [`RunLoop`]. It is one word and cheap to clone. It stays valid when the loop is dropped.
#[derive(Clone)]
pub struct RunLoopExecutor {
    shared: Arc<Shared>,
}

// SAFETY: the header in `no_op` is touched by the one caller of `finish` that posts it, and then by the loop;
// everything else is `Sync`.
unsafe impl Sync for Shared {}

/// The part of a run loop that other threads can reach.
#[doc(hidden)]
pub struct Shared {
    /// The owner thread of the tasks that live here. The runner enters it while it runs.
    owner: OwnerThread,
    inbox: Inbox,
    finished: AtomicBool,
    /// Work that does nothing. The first `finish` posts it, to wake the loop in the same way as other work
    /// does.
    no_op: UnsafeCell<Header>,
    /// The thread that runs the loop, to be unparked. The runner sets it before it can sleep.
    runner: Mutex<Option<thread::Thread>>,
    timers: TimerQueue,
    /// Number of pieces of work elsewhere that will post here when they end.
    expected: AtomicUsize,
    attached: Attached,
}

/// The sleeper and the context of a loop. A plain loop has neither.
#[derive(Default)]
struct Attached {
    sleeper: Option<GuardedSleeper>,
    context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
}

impl RunLoop {
    /// Creates a loop with an empty queue.
    pub fn new() -> Self {
        Self { executor: RunLoopExecutor::new(), runner: Runner::new(), _not_send: PhantomData }
    }

    /// Creates a loop that sleeps by `sleeper`, and whose executor returns `context`.
    pub fn over(
        sleeper: std::sync::Arc<dyn Sleeper>,
        context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let attached = Attached { sleeper: Some(GuardedSleeper::new(sleeper)), context };
        Self { executor: RunLoopExecutor::with(attached), runner: Runner::new(), _not_send: PhantomData }
    }

    /// Returns the executor through which work is posted.
    pub fn executor(&self) -> RunLoopExecutor {
        self.executor.clone()
    }

    /// Asks [`run`](RunLoop::run) to return when its queue is empty.
    pub fn finish(&self) {
        self.executor.finish();
    }

    /// Runs work on this thread until [`finish`](RunLoop::finish) was called and the queue is empty. It may
    /// be called again, and then returns when the queue is empty. After `finish` it does not wait for timers:
    /// work whose time has not come stays armed.
    ///
    /// # Panics
    /// If a piece of work panics (senders and tasks do not: they catch panics). The rest stays queued, and
    /// `run` may be called again.
    pub fn run(&self) {
        self.runner.run(&self.executor.shared);
    }

    /// Runs the queued work, and what that work queues, without waiting. Returns the number of pieces.
    pub fn run_ready(&self) -> usize {
        self.runner.run_ready(&self.executor.shared)
    }

    /// Runs one piece of queued work, without waiting. Returns true if there was one.
    pub fn run_one(&self) -> bool {
        self.runner.run_one(&self.executor.shared)
    }

    /// Runs work, and sleeps when there is none, while `goes_on` returns true. It is called before each piece
    /// of work and before each sleep, with the [`Moment`].
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    pub fn run_while(&self, goes_on: impl FnMut(Moment) -> bool) {
        self.runner.run_while(&self.executor.shared, goes_on);
    }

    /// Returns the time of the earliest timer.
    pub fn next_timer(&self) -> Option<Instant> {
        self.executor.shared.earliest()
    }

    /// Returns true if a timer is armed.
    pub fn has_timers(&self) -> bool {
        !self.executor.shared.timers.is_empty()
    }

    /// Returns true if work is queued, or if work [has begun](Executor::work_began) elsewhere that will post
    /// here, for example a launched chain. Timers do not count.
    pub fn has_work(&self) -> bool {
        // In this order: work queues what it posts before it reports its end.
        let shared = &self.executor.shared;
        shared.expected.load(Ordering::Acquire) > 0 || !self.runner.is_empty() || !shared.inbox.is_empty()
    }

    /// Prepares a loop that is embedded in another event loop to be left alone: from now on a post wakes the
    /// sleeper, as if the loop slept. Returns false if there is work to run. Call [`rouse`](RunLoop::rouse)
    /// before anything else.
    #[must_use = "if this returns false there is work to run, and no post will wake the sleeper"]
    pub fn doze(&self) -> bool {
        let dozes = self.runner.is_empty() && self.executor.shared.inbox.fall_asleep();
        // Pairs with the fence in `arm`, as in `sleep`: either the caller sees the timer in the time that it
        // asks for next, or `arm` sees that the loop is asleep and wakes it.
        fence(Ordering::SeqCst);
        dozes
    }

    /// Ends a [`doze`](RunLoop::doze).
    pub fn rouse(&self) {
        self.executor.shared.inbox.wake_up();
    }

    /// Returns true if there is no other handle of the loop and nothing is queued. Then nothing can be posted
    /// any more either.
    #[doc(hidden)]
    pub fn is_unused(&self) -> bool {
        self.runner.is_empty() && self.executor.is_unused()
    }

    /// Runs work on this thread until `done` returns true. Returns the panic of a piece of work, if one panicked.
    #[doc(hidden)]
    pub fn run_until(&self, done: impl Fn() -> bool) -> Option<Panic> {
        self.runner.run_until(&self.executor.shared, done)
    }

    /// Calls `f` as on the owner thread of the tasks of this loop.
    #[doc(hidden)]
    pub fn on_owner_thread<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the loop belongs to this thread, as it is not `Send`; and it is borrowed, so it is not
        // closed meanwhile: `drop` closes it.
        let _on_owner = unsafe { self.executor.shared.owner.enter() };
        f()
    }

    /// Calls `f` as work of the loop is called. Then stops all queued work, and what comes of that, without
    /// running it. Does not call timers. Simulations use it for hosts that crash: dropping the loop does the
    /// same, but then work that is posted to the dropped loop is stopped inside its `post`.
    #[cfg(feature = "testing")]
    pub fn stop_unrun(&self, f: impl FnOnce()) {
        self.runner.stop_unrun(&self.executor.shared, f);
    }

    /// Calls `f` as work of the loop is called.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.runner.within(&self.executor.shared, f)
    }
}

impl Drop for RunLoop {
    fn drop(&mut self) {
        let cleared = Panic::catch(|| self.on_owner_thread(|| self.runner.clear()));
        // SAFETY: the loop belongs to this thread, as it is not `Send`, and cannot run after its `drop`.
        let closed = Panic::catch(|| unsafe { self.executor.close() });
        // A second panic during unwinding would abort the process.
        if let Err(panic) = cleared.and(closed)
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

impl RunLoopExecutor {
    #[doc(hidden)]
    pub fn new() -> Self {
        Self::with(Attached::default())
    }

    fn with(attached: Attached) -> Self {
        // The clock of a sleeper may be behind that of the machine.
        let epoch = attached.sleeper.as_ref().map_or_else(Instant::now, GuardedSleeper::now);
        Self {
            shared: Arc::new(Shared {
                owner: OwnerThread::new(),
                inbox: Inbox::new(),
                finished: AtomicBool::new(false),
                no_op: UnsafeCell::new(Header::new(const { &WorkKind::new(|_, _| {}) })),
                runner: Mutex::new(None),
                timers: TimerQueue::since(epoch),
                expected: AtomicUsize::new(0),
                attached,
            }),
        }
    }

    /// Asks the loop's [`run`](RunLoop::run) to return when its queue is empty.
    pub fn finish(&self) {
        if !self.shared.finished.swap(true, Ordering::AcqRel) {
            let no_op = self.shared.no_op.with_mut(NonNull::new).expect("the address of a field is not null");
            // SAFETY: the swap above succeeds once, so the header is posted once. It lies in the block
            // that all handles share; a loop that is dropped stops it and does not keep it.
            self.post(unsafe { Runnable::new(no_op) });
        }
    }

    /// Refuses all further work and stops what is queued.
    ///
    /// # Safety
    /// The loop is not run any more, and no other thread runs it now.
    #[doc(hidden)]
    pub unsafe fn close(&self) {
        // SAFETY: only a runner enters the owner thread, and no thread runs the loop now or later: `drop` of a
        // `RunLoop` calls this, and `sync_wait`, after the last run.
        let _on_owner = unsafe { self.shared.owner.close() };
        self.shared.timers.close();
        drop(self.shared.inbox.close());
    }

    /// Returns the shared part, for the runner.
    #[doc(hidden)]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns true if this is the only handle and nothing is queued. Then nothing can be posted any more
    /// either.
    #[inline]
    #[doc(hidden)]
    pub fn is_unused(&self) -> bool {
        if Arc::strong_count(&self.shared) != 1 {
            return false;
        }
        // The count is read relaxed. This pairs with the release by which other handles were dropped: we see
        // what was posted through them.
        fence(Ordering::Acquire);
        self.shared.inbox.is_idle()
    }

    /// Posts from another thread or another loop. Out of line, to keep the path of the loop's own posts
    /// short.
    #[inline(never)]
    fn post_from_outside(&self, runnable: Runnable) {
        match self.shared.inbox.push(runnable) {
            Pushed::Queued => {}
            Pushed::WakeSleeper => self.shared.unpark(),
            Pushed::Closed(runnable) => runnable.stop(),
        }
    }
}

#[diagnostic::do_not_recommend]
impl Executor for RunLoopExecutor {
    const QUEUES_LOCALLY: bool = true;

    #[inline]
    fn post(&self, runnable: Runnable) {
        if let Err(runnable) = Runner::post_local(&self.shared, runnable) {
            self.post_from_outside(runnable);
        }
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if Runner::is_running(&self.shared) {
            return Some(runnable);
        }
        self.post(runnable);
        None
    }

    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        Some(&self.shared.owner)
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.shared)
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.shared.attached.context.as_deref()
    }

    fn work_began(&self) {
        self.shared.expected.fetch_add(1, Ordering::Relaxed);
    }

    fn work_ended(&self) {
        let was_last = self.shared.expected.fetch_sub(1, Ordering::AcqRel) == 1;
        // The loop itself checks the count before it sleeps. A plain loop does not wait for this count, but
        // for `finish`.
        if was_last
            && !Runner::is_running(&self.shared)
            && let Some(sleeper) = self.shared.sleeper()
        {
            sleeper.wake();
        }
    }
}

// SAFETY: the queue keeps the contract of `Timers`. The block outlives each call of a timer: the runner that
// makes it holds a handle.
unsafe impl Timers for Shared {
    fn now(&self) -> Instant {
        Shared::now(self)
    }

    fn arm(&self, timer: IdleTimer, at: Instant) {
        let after = self.timers.arm(timer, at);
        if after == AfterArm::IsEarliest && !Runner::is_running(self) {
            // Pairs with the fence in `sleep`: either we see that the loop sleeps, or it sees the time
            // that we have set.
            fence(Ordering::SeqCst);
            if self.inbox.is_asleep() && self.inbox.wake_up() {
                // Contained: the timer is armed, so this must not look like a failure.
                contain(report_panic, || self.unpark());
            }
        }
    }

    fn arm_after(&self, timer: IdleTimer, duration: Duration) -> Option<Instant> {
        if Runner::is_running(self) {
            // This thread runs the loop, which reads the clock before its next run: once for all durations that
            // one run has armed.
            self.timers.arm_at_next_check(timer, duration);
            Runner::settle_next();
            return None;
        }
        let at = Shared::now(self) + duration;
        self.arm(timer, at);
        Some(at)
    }

    fn known_time(&self, timer: ArmedTimer) -> Option<Instant> {
        self.timers.known_time(timer)
    }

    fn disarm(&self, timer: ArmedTimer) -> bool {
        self.timers.disarm(timer)
    }
}

impl Shared {
    fn now(&self) -> Instant {
        self.sleeper().map_or_else(Instant::now, GuardedSleeper::now)
    }

    /// Returns the time of the earliest timer. Called on the thread of the loop.
    fn earliest(&self) -> Option<Instant> {
        self.timers.settle(|| self.now());
        self.timers.earliest()
    }

    /// Returns the time at which the timers must be checked next. Called on the thread of the loop.
    fn next_timer_check(&self) -> Option<Instant> {
        self.timers.settle(|| self.now());
        self.timers.next_check()
    }

    fn sleeper(&self) -> Option<&GuardedSleeper> {
        self.attached.sleeper.as_ref()
    }

    /// Wakes the thread of the loop.
    #[cold]
    fn unpark(&self) {
        if let Some(sleeper) = self.sleeper() {
            return sleeper.wake();
        }
        if let Some(runner) = &*self.lock_runner() {
            runner.unpark();
        }
    }

    fn lock_runner(&self) -> MutexGuard<'_, Option<thread::Thread>> {
        self.runner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl PartialEq for RunLoopExecutor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for RunLoopExecutor {}

impl Default for RunLoop {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RunLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLoop").finish_non_exhaustive()
    }
}

impl fmt::Debug for RunLoopExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLoopExecutor").finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
