//! A queue and the thread that runs it: the simplest executor that is somewhere.

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
use convoke_core::raw::{Header, OwnerThread, Runnable, Timer, Timers, WorkKind};
use convoke_core::{Executor, Panic};

use crate::inbox::{Inbox, Pushed};
use crate::time::queue::{AfterArm, TimerQueue};
use convoke_core::raw::{contain, report_panic};
pub use runner::Moment;
pub use runner::Runner;
use sleeper::Guarded;
pub use sleeper::{LOOK_EACH, Sleeper, look_next};

/// Runs work on the thread that calls [`run`](RunLoop::run). Others post to it through its
/// [`executor`](RunLoop::executor).
///
/// It never spins; it makes a system call only to sleep, and who posts only to wake a sleeper. Dropping the loop
/// completes all that is still queued as stopped, and so does posting to it afterwards. It has timers of its own: work
/// that waits for a time is called by the loop's thread.
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
    /// Tasks that are not `Send` may live here: the loop stays on the thread that made it.
    _not_send: PhantomData<*mut ()>,
}

/// The handle of a [`RunLoop`]: one word, cheap to clone, valid for ever.
#[derive(Clone)]
pub struct RunLoopExecutor {
    shared: Arc<Shared>,
}

// SAFETY: the nudge is touched by the one who posts it, and then by the loop.
unsafe impl Sync for Shared {}

#[doc(hidden)]
pub struct Shared {
    /// Of the tasks that live here; the runner enters it while it runs.
    home: OwnerThread,
    inbox: Inbox,
    finished: AtomicBool,
    /// Posted once, by the first `finish`, so that it wakes the loop by the way that all work does.
    nudge: UnsafeCell<Header>,
    /// The thread that runs the loop, to be woken; set by the runner before it can sleep.
    runner: Mutex<Option<thread::Thread>>,
    timers: TimerQueue,
    /// How much work has begun that will come back here.
    expected: AtomicUsize,
    lean_on: LeanOn,
}

/// What the loop was made with, if it is not a plain one.
#[derive(Default)]
struct LeanOn {
    sleeper: Option<Guarded>,
    context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
}

impl RunLoop {
    /// A loop with an empty queue.
    pub fn new() -> Self {
        Self { executor: RunLoopExecutor::new(), runner: Runner::new(), _not_send: PhantomData }
    }

    /// A loop that sleeps by this sleeper, and whose executor hands out this context.
    pub fn over(
        sleeper: std::sync::Arc<dyn Sleeper>,
        context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let lean_on = LeanOn { sleeper: Some(Guarded::new(sleeper)), context };
        Self { executor: RunLoopExecutor::with(lean_on), runner: Runner::new(), _not_send: PhantomData }
    }

    /// The handle through which work is posted.
    pub fn executor(&self) -> RunLoopExecutor {
        self.executor.clone()
    }

    /// Asks [`run`](RunLoop::run) to return when its queue is empty.
    pub fn finish(&self) {
        self.executor.finish();
    }

    /// Runs work on this thread until [`finish`](RunLoop::finish) was called and the queue is empty. It may be called
    /// again after that, and then returns when the queue is empty. It does not wait for timers then: work whose time has
    /// not come stays where it is.
    ///
    /// # Panics
    /// If a piece of work panics (senders do not: they catch). The rest stays queued, and `run` may be called again.
    pub fn run(&self) {
        self.runner.run(&self.executor.shared);
    }

    /// Runs what is queued now, and what that queues, without waiting. Says how many pieces it ran.
    pub fn run_ready(&self) -> usize {
        self.runner.run_ready(&self.executor.shared)
    }

    /// Runs one piece of work if there is one, without waiting. Says whether there was.
    pub fn run_one(&self) -> bool {
        self.runner.run_one(&self.executor.shared)
    }

    /// Runs work, and sleeps when there is none, for as long as `goes_on` says so. It is asked before each piece of work and
    /// before each sleep, and told which.
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    pub fn run_while(&self, goes_on: impl FnMut(Moment) -> bool) {
        self.runner.run_while(&self.executor.shared, goes_on);
    }

    /// When the first timer is due.
    pub fn next_timer(&self) -> Option<Instant> {
        self.executor.shared.earliest()
    }

    /// Whether a timer waits.
    pub fn has_timers(&self) -> bool {
        !self.executor.shared.timers.is_empty()
    }

    /// Whether something is queued, or work [has begun](Executor::work_began) that will come back here: a launched chain, for one.
    /// Timers are another matter.
    pub fn has_work(&self) -> bool {
        // In this order: what work has posted is queued when it says that it has ended.
        let shared = &self.executor.shared;
        shared.expected.load(Ordering::Acquire) > 0 || !self.runner.is_empty() || !shared.inbox.is_empty()
    }

    /// For a loop that is a guest in somebody else's: from now on whoever posts wakes the sleeper, as if the loop slept. False
    /// if there is something to run. [`rouse`](RunLoop::rouse) it before anything else.
    #[must_use = "if there is something to run, nobody will be woken"]
    pub fn doze(&self) -> bool {
        let dozes = self.runner.is_empty() && self.executor.shared.inbox.fall_asleep();
        // With the fence in `arm`, as in a sleep: the time that is asked for next is that of all timers, or it is announced.
        fence(Ordering::SeqCst);
        dozes
    }

    /// The loop does not [`doze`](RunLoop::doze) any more.
    pub fn rouse(&self) {
        self.executor.shared.inbox.wake_up();
    }

    /// Returns true if nobody else has a handle of the loop and nothing is queued: then nothing can come any more, either.
    #[doc(hidden)]
    pub fn is_unused(&self) -> bool {
        self.runner.is_empty() && self.executor.is_unused()
    }

    /// Runs work on this thread until `done` returns true. Returns the panic of a piece of work, if one panicked.
    #[doc(hidden)]
    pub fn run_until(&self, done: impl Fn() -> bool) -> Option<Panic> {
        self.runner.run_until(&self.executor.shared, done)
    }

    /// Calls `f` as on the thread that the tasks of this loop stay on.
    #[doc(hidden)]
    pub fn at_home<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the loop is this thread's, as it is not `Send`, and borrowed; nobody closes it now.
        let _home = unsafe { self.executor.shared.home.enter() };
        f()
    }

    /// Calls `f` as work of the loop is called. Then all that is queued, and all that comes of it, is stopped without being run; timers
    /// are not called. For simulations, whose hosts crash: dropping the loop does the same, but whatever comes to a loop
    /// that is gone is stopped where it is posted.
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
        let cleared = Panic::catch(|| {
            // SAFETY: we are the loop, and have it to ourselves.
            let _inside = unsafe { self.executor.shared.home.enter() };
            self.runner.clear();
        });
        // SAFETY: the loop is this thread's, and is gone after this.
        let closed = Panic::catch(|| unsafe { self.executor.close() });
        // Inside of a panic a second one would end the process.
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
        Self::with(LeanOn::default())
    }

    fn with(lean_on: LeanOn) -> Self {
        // A clock of the sleeper's own may be behind the machine's.
        let epoch = lean_on.sleeper.as_ref().map_or_else(Instant::now, Guarded::now);
        Self {
            shared: Arc::new(Shared {
                home: OwnerThread::new(),
                inbox: Inbox::new(),
                finished: AtomicBool::new(false),
                nudge: UnsafeCell::new(Header::new(const { &WorkKind::new(|_, _| {}) })),
                runner: Mutex::new(None),
                timers: TimerQueue::since(epoch),
                expected: AtomicUsize::new(0),
                lean_on,
            }),
        }
    }

    /// Asks the loop's [`run`](RunLoop::run) to return when its queue is empty.
    pub fn finish(&self) {
        if !self.shared.finished.swap(true, Ordering::AcqRel) {
            let nudge = self.shared.nudge.with_mut(NonNull::new).expect("a field has an address");
            // SAFETY: the header lies in what all handles share, and is posted this once; the inbox of a loop that is
            // gone holds nothing.
            self.post(unsafe { Runnable::new(nudge) });
        }
    }

    /// Refuses all further work and stops what is queued.
    ///
    /// # Safety
    /// The loop is not run any more, and no other thread runs it now.
    #[doc(hidden)]
    pub unsafe fn close(&self) {
        // SAFETY: the caller's: only a runner enters the home.
        let _inside = unsafe { self.shared.home.close() };
        self.shared.timers.close();
        drop(self.shared.inbox.close());
    }

    /// The inside, for the runner.
    #[doc(hidden)]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether this is the only handle and nothing is queued: then nothing can come any more, either.
    #[inline]
    #[doc(hidden)]
    pub fn is_unused(&self) -> bool {
        if Arc::strong_count(&self.shared) != 1 {
            return false;
        }
        // The count is read relaxed. With the release by which the other handles went, we see what was posted through them.
        fence(Ordering::Acquire);
        self.shared.inbox.is_idle()
    }

    /// Out of line: the way of what the loop's own work posts is short.
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
        if let Err(runnable) = Runner::post_here(&self.shared, runnable) {
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
        Some(&self.shared.home)
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.shared)
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.shared.lean_on.context.as_deref()
    }

    fn work_began(&self) {
        self.shared.expected.fetch_add(1, Ordering::Relaxed);
    }

    fn work_ended(&self) {
        let was_the_last = self.shared.expected.fetch_sub(1, Ordering::AcqRel) == 1;
        // The loop itself looks before it sleeps. A plain one waits for no work, but until it is told to finish.
        if was_the_last
            && !Runner::is_running(&self.shared)
            && let Some(sleeper) = self.shared.sleeper()
        {
            sleeper.wake();
        }
    }
}

// SAFETY: the queue keeps the contract; whoever runs the loop holds a handle of it while he calls timers.
unsafe impl Timers for Shared {
    fn now(&self) -> Instant {
        Shared::now(self)
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        // SAFETY: the caller's.
        let after = unsafe { self.timers.arm(timer, at) };
        if after == AfterArm::IsEarliest && !Runner::is_running(self) {
            // With the fence in `sleep`: either we see that the loop sleeps, or it sees the time that we have set.
            fence(Ordering::SeqCst);
            if self.inbox.is_asleep() && self.inbox.wake_up() {
                // The timer is armed: that must not look as if it was not.
                contain(report_panic, || self.unpark());
            }
        }
    }

    unsafe fn arm_after(&self, timer: NonNull<Timer>, duration: Duration) -> Option<Instant> {
        if Runner::is_running(self) {
            // SAFETY: the caller's; and this thread looks before the loop sleeps.
            unsafe { self.timers.arm_at_next_look(timer, duration) };
            return None;
        }
        let at = Shared::now(self) + duration;
        // SAFETY: the caller's.
        unsafe { self.arm(timer, at) };
        Some(at)
    }

    unsafe fn known_time(&self, timer: NonNull<Timer>) -> Option<Instant> {
        // SAFETY: the caller's.
        unsafe { self.timers.known_time(timer) }
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the caller's.
        unsafe { self.timers.disarm(timer) }
    }
}

impl Shared {
    fn now(&self) -> Instant {
        self.sleeper().map_or_else(Instant::now, Guarded::now)
    }

    /// When the first timer is due. On the thread of the loop.
    fn earliest(&self) -> Option<Instant> {
        self.timers.settle(|| self.now());
        self.timers.earliest()
    }

    /// When to look at the timers next. On the thread of the loop.
    fn next_look(&self) -> Option<Instant> {
        self.timers.settle(|| self.now());
        self.timers.next_look()
    }

    fn sleeper(&self) -> Option<&Guarded> {
        self.lean_on.sleeper.as_ref()
    }

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
