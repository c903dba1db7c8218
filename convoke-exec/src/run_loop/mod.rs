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
//! | `bounded` | runs that end after a number of pieces or at a time |
//! | `as_future`, `loop_timer` | the loop as a future of a foreign executor, and what wakes it for timers |
//! | `blocked` | the report of a loop that sleeps inside a task |
//! | `sleeper` | the trait by which an I/O driver replaces parking |
//! | `timers` | the loop as the timers of its executor |
//! | `destructors` | the destructors of a loop and its parts, each compiled once |
//! | `embedded` | a loop without a thread of its own, which another event loop runs |

#![allow(unsafe_code)]

mod as_future;
mod blocked;
mod bounded;
mod destructors;
mod embedded;
mod loop_timer;
mod runner;
mod sleeper;
mod timers;

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::task::Waker;
use std::time::Instant;

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use convoke_core::raw::sync::{Arc, Mutex, MutexGuard, UnsafeCell, thread};
use convoke_core::raw::{Header, OutOfLine, OwnerId, OwnerThread, Runnable, Timers, WorkKind};
use convoke_core::{Executor, ExecutorRef, FrameAllocator, Panic};

use crate::inbox::{Inbox, Pushed};
use crate::time::queue::TimerQueue;
pub use as_future::{LoopFuture, PIECES_PER_POLL};
pub use bounded::LoopTurn;
use convoke_core::raw::wake_if_any;
pub use embedded::EmbeddedLoop;
pub use loop_timer::{LoopTimer, TimerBy, TimerOfProcess};
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
/// use convoke::executor::RunLoop;
/// use convoke::prelude::*;
/// use convoke::run_on;
///
/// let run_loop = RunLoop::new();
/// let executor = run_loop.executor();
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let on_loop = block_on(async {
///             run_on(&executor, async { std::thread::current().id() }).await
///         });
///         assert_ne!(on_loop.unwrap(), std::thread::current().id());
///         executor.finish();
///     });
///     run_loop.run();
/// });
/// ```
pub struct RunLoop {
    executor: RunLoopExecutor,
    runner: OutOfLine<Runner>,
    /// The loop stays on the thread that created it, so that tasks that are not `Send` may live here.
    _not_send: PhantomData<*mut ()>,
}

/// Executor of a [`RunLoop`] or an [`EmbeddedLoop`]. It is one word and cheap to clone. It stays valid when the loop is dropped.
#[derive(Clone)]
pub struct RunLoopExecutor {
    shared: Arc<OutOfLine<SharedLoop>>,
}

// SAFETY: the header in `no_op` is touched by the one caller of `finish` that posts it, and then by the loop;
// everything else is `Sync`.
unsafe impl Sync for SharedLoop {}

/// The part of a run loop that other threads can reach.
#[doc(hidden)]
pub struct SharedLoop {
    /// The owner thread of the tasks that live here. The runner enters it while it runs. `None` for an embedded
    /// loop: its tasks may be run by any thread, one at a time.
    owner: Option<OwnerThread>,
    /// The number of the owner, or `NOBODY`.
    owner_id: OwnerId,
    inbox: Inbox,
    finished: AtomicBool,
    /// Work that does nothing. The first `finish` posts it, to wake the loop in the same way as other work
    /// does.
    no_op: UnsafeCell<Header>,
    /// The thread that runs the loop, to be unparked. The runner sets it before it can sleep.
    runner: Mutex<Option<thread::Thread>>,
    /// The task of a foreign executor that drives the loop, to be woken instead. Set while the loop dozes in it.
    driven_by: Mutex<Option<Waker>>,
    timers: TimerQueue,
    /// Number of pieces of work elsewhere that will post here when they end.
    expected: AtomicUsize,
    attached: Attached,
}

/// The sleeper, the context and the frame allocator of a loop. A plain loop has no sleeper and no context.
#[derive(Default)]
struct Attached {
    sleeper: Option<GuardedSleeper>,
    context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
    allocator: FrameAllocator,
}

impl RunLoop {
    /// Creates a loop with an empty queue.
    pub fn new() -> Self {
        Self {
            executor: RunLoopExecutor::new(),
            runner: OutOfLine::new(Runner::new()),
            _not_send: PhantomData,
        }
    }

    /// Creates a loop that sleeps by `sleeper`, and whose executor returns `context`.
    pub fn over(
        sleeper: std::sync::Arc<dyn Sleeper>,
        context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        Self::over_with(sleeper, context, FrameAllocator::default())
    }

    /// Creates a loop that sleeps by `sleeper`, whose executor returns `context`, and on which tasks are launched
    /// with `allocator` if they name none.
    pub fn over_with(
        sleeper: std::sync::Arc<dyn Sleeper>,
        context: Option<std::sync::Arc<dyn Any + Send + Sync>>,
        allocator: FrameAllocator,
    ) -> Self {
        let attached = Attached { sleeper: Some(GuardedSleeper::new(sleeper)), context, allocator };
        let executor = RunLoopExecutor::with(attached, Some(OwnerThread::new()));
        Self { executor, runner: OutOfLine::new(Runner::new()), _not_send: PhantomData }
    }

    /// Returns the executor through which work is posted.
    pub fn executor(&self) -> RunLoopExecutor {
        self.executor.clone()
    }

    /// Asks [`run`](RunLoop::run) to return when its queue is empty.
    pub fn finish(&self) {
        self.executor.finish();
    }

    /// Runs work on this thread until [`finish`](RunLoop::finish) was called and the queue is empty. Returns the
    /// number of pieces that ran. It may be called again, and then returns when the queue is empty. After
    /// `finish` it does not wait for timers: work whose time has not come stays armed.
    ///
    /// # Panics
    /// If a piece of work panics (senders and tasks do not: they catch panics). The rest stays queued, and
    /// `run` may be called again.
    #[track_caller]
    pub fn run(&self) -> usize {
        self.runner.run(&self.executor.shared)
    }

    /// Runs work, and sleeps when there is none, while `goes_on` returns true. It is called before each piece
    /// of work and before each sleep, with the [`Moment`].
    ///
    /// # Panics
    /// As [`run`](RunLoop::run).
    #[track_caller]
    pub fn run_while(&self, goes_on: impl FnMut(Moment) -> bool) {
        self.runner.run_while(&self.executor.shared, None, goes_on);
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
        self.runner.doze(&self.executor.shared)
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
    #[track_caller]
    pub fn run_until_done(&self, done: impl Fn() -> bool) -> Option<Panic> {
        self.runner.run_until_done(&self.executor.shared, done)
    }

    /// Calls `f` as on the owner thread of the tasks of this loop.
    #[doc(hidden)]
    pub fn on_owner_thread<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the loop belongs to this thread, as it is not `Send`; and it is borrowed, so it is not
        // closed meanwhile: `drop` closes it.
        let _on_owner = self.executor.shared.owner.as_ref().map(|owner| unsafe { owner.enter() });
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
        Self::with(Attached::default(), Some(OwnerThread::new()))
    }

    fn with(attached: Attached, owner: Option<OwnerThread>) -> Self {
        // The clock of a sleeper may be behind that of the machine.
        let epoch = attached.sleeper.as_ref().map_or_else(Instant::now, GuardedSleeper::now);
        Self {
            shared: Arc::new(OutOfLine::new(SharedLoop {
                owner_id: owner.as_ref().map_or(OwnerId::NOBODY, OwnerThread::id),
                owner,
                inbox: Inbox::new(),
                finished: AtomicBool::new(false),
                no_op: UnsafeCell::new(Header::new(const { &WorkKind::new(|_, _| {}) })),
                runner: Mutex::new(None),
                driven_by: Mutex::new(None),
                timers: TimerQueue::since(epoch),
                expected: AtomicUsize::new(0),
                attached,
            })),
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
        let _on_owner = self.shared.owner.as_ref().map(|owner| unsafe { owner.close() });
        self.shared.refuse_all();
    }

    /// Returns the shared part, for a [`Runner`].
    ///
    /// # Safety
    /// If the result is used to run the loop, no other thread runs it meanwhile: a thread that runs a loop is the
    /// owner of its tasks.
    #[doc(hidden)]
    pub unsafe fn shared(&self) -> &SharedLoop {
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

    // Compiled once, with the table of its functions.
    #[inline(never)]
    fn erased(self) -> ExecutorRef {
        ExecutorRef::erase(self)
    }

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
        self.shared.owner.as_ref()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&**self.shared)
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.shared.attached.context.as_deref()
    }

    fn allocator(&self) -> FrameAllocator {
        self.shared.attached.allocator.clone()
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

impl SharedLoop {
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

    /// Refuses all further work and timers, and stops what is queued and armed.
    fn refuse_all(&self) {
        self.timers.close();
        drop(self.inbox.close());
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
        // Woken without the lock: a waker is foreign code. The thread may sleep nevertheless, in a run of the loop inside
        // a poll of its future.
        let driven_by = lock(&self.driven_by).take();
        wake_if_any(driven_by);
        if let Some(runner) = &*self.lock_runner() {
            runner.unpark();
        }
    }

    fn lock_runner(&self) -> MutexGuard<'_, Option<thread::Thread>> {
        lock(&self.runner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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

impl fmt::Debug for SharedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLoop").finish_non_exhaustive()
    }
}
