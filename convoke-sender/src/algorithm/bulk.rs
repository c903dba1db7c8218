//! `bulk(n, f)`: calls a function with every index, in parallel if the executor can.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::{PhantomData, PhantomPinned};
use core::ops::{Deref, Range};
use core::pin::Pin;
use core::ptr::NonNull;

use super::bulk_share::Share;
use super::continuation::{Continuation, Sequenced, Step};
use crate::operation::{EnvAbove, Posted, Resume};
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{Call, FrameMemory, FrameVec, Operation, WorkRef};
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Outcome, Panic};

/// Calls a function with every index below `count` and the value, and passes the value on.
///
/// If it is known on which executor the sender before completes, and that executor runs several things at
/// once, the calls are spread over it; otherwise they are made one after another. The thread on which the
/// value arrives makes its share of the calls too. A call that panics and a stop request end it early: no new
/// calls are made, and those that are running are awaited.
///
/// - *Completes with* the value after all calls; error and stopped pass through. If `f` panics: panicked.
///   Stopped if a stop was requested before all calls were made.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the executor on which the sender before completes, and completes there, on the thread that is
///   the last to finish its calls. Allocates once if it spreads the calls.
///
/// ```
/// use convoke::sender::prelude::*;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let add = |i, sum: &AtomicUsize| _ = sum.fetch_add(i, Ordering::Relaxed);
/// let sum = just(AtomicUsize::new(0)).bulk(100, add).then(AtomicUsize::into_inner);
/// assert_eq!(sync_wait(sum), Outcome::Value(4950));
/// ```
pub type Bulk<S, F> = Sequenced<S, CallEach<F>>;

/// The continuation of `bulk`: the calls, with the value.
#[derive(Clone)]
pub struct CallEach<F> {
    count: usize,
    f: F,
    /// The executor on which the sender before completes, if that is known.
    executor: Option<ExecutorRef>,
}

impl<F> CallEach<F> {
    pub(crate) fn new(count: usize, f: F) -> Self {
        Self { count, f, executor: None }
    }
}

impl<V, E, F> Continuation<V, E> for CallEach<F>
where
    V: Send + Sync,
    F: Fn(usize, &V) + Send + Sync,
{
    type Next = Calls<V, E, F>;

    #[inline]
    fn starts<S: Sender<Value = V, Error = E>>(&mut self, first: &S, env: &Env) {
        self.executor = first.completes_on(env);
    }

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<Calls<V, E, F>> {
        Step::from_value(outcome, |value| Calls { value, calls: self, _error: PhantomData })
    }
}

/// The sender that calls a function with every index and a value, and completes with the value.
#[derive(Debug)]
pub struct Calls<V, E, F> {
    value: V,
    calls: CallEach<F>,
    _error: PhantomData<fn() -> E>,
}

// SAFETY: rules 1 and 2 of `Sender`: the last runner completes the receiver last, when all others have left.
// Rule 3: the runners are `start`, which is called where the sender before has completed, and helpers on the
// executor that it completes on. Not inline, because helpers may still run.
#[diagnostic::do_not_recommend]
unsafe impl<V, E, F> Sender for Calls<V, E, F>
where
    V: Send + Sync,
    F: Fn(usize, &V) + Send + Sync,
{
    type Value = V;
    type Error = E;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<V, E>> = BulkOperation<V, E, F, R>;

    #[inline]
    fn connect<R: Receiver<V, E>>(self, receiver: R) -> BulkOperation<V, E, F, R> {
        let CallEach { count, f, executor } = self.calls;
        // Caught: the executor may be implemented by the program.
        let width = Panic::catch(|| executor.as_ref().map_or(1, Executor::parallelism));
        let (width, broken) = match width {
            Ok(width) => (width, None),
            Err(panic) => (1, Some(panic)),
        };
        let runners = width.min(count).max(1);
        let share = Share::new(count, runners);
        if let Some(panic) = broken {
            share.end_with(panic);
        }
        BulkOperation {
            executor: Cell::new(executor),
            f,
            value: UnsafeCell::new(Some(self.value)),
            share: UnsafeCell::new(share),
            runners: AtomicUsize::new(runners),
            helpers: UnsafeCell::new(FrameMemory::vec(FrameAllocator::recycling())),
            env: EnvAbove::new(),
            receiver: UnsafeCell::new(Some(receiver)),
            _error: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`Calls`].
///
/// 1. `start` is the only user until it posts the first helper.
/// 2. The runners, which are `start` and the helpers, share `f`, the value, the share and `env`, which are
///    read-only, until each of them leaves. `start` leaves after it has posted all helpers.
/// 3. A helper carries a runner, and belongs to the holder of its runnable.
/// 4. The last runner to leave is the only user of everything, and completes the receiver.
pub struct BulkOperation<V, E, F, R> {
    executor: Cell<Option<ExecutorRef>>,
    f: F,
    value: UnsafeCell<Option<V>>,
    share: UnsafeCell<Share>,
    runners: AtomicUsize,
    helpers: UnsafeCell<Helpers<V, E, F, R>>,
    env: EnvAbove,
    receiver: UnsafeCell<Option<R>>,
    _error: PhantomData<fn() -> E>,
    _pinned: PhantomPinned,
}

impl<V, E, F, R> Operation for BulkOperation<V, E, F, R>
where
    V: Send + Sync,
    F: Fn(usize, &V) + Send + Sync,
    R: Receiver<V, E>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: nothing is shared yet. Rule 2: the operation is alive as long as a runner has not left. Rule 4:
        // the receiver is not moved until the last runner, which reads the environment no more, takes it.
        let runner = unsafe {
            let runner = BulkRunner(WorkRef::new(this));
            if let Some(receiver) = &*runner.receiver.get_const() {
                runner.env.ask(receiver);
            }
            runner
        };
        // Relaxed: this thread wrote it, or started after the one that did.
        let helpers = runner.runners.load(Ordering::Relaxed) - 1;
        if let Some(executor) = runner.executor.take()
            && helpers > 0
        {
            runner.post_helpers(&executor, helpers);
        }
        runner.work();
        runner.leave();
    }
}

/// A unit of work that is posted to the executor (rule 3).
type Helper<V, E, F, R> = Posted<BulkRunner<V, E, F, R>>;
type Helpers<V, E, F, R> = FrameVec<Helper<V, E, F, R>>;

/// A runner that has not left (rule 2).
pub struct BulkRunner<V, E, F, R>(WorkRef<BulkOperation<V, E, F, R>>);

// SAFETY: all parts of the operation are `Send`, and those that runners share (rule 2) are `Sync`; rules 1 and
// 4 give the rest to one thread at a time.
unsafe impl<V: Send + Sync, E, F: Send + Sync, R: Send> Send for BulkRunner<V, E, F, R> {}

impl<V, E, F, R> Deref for BulkRunner<V, E, F, R> {
    type Target = BulkOperation<V, E, F, R>;

    #[inline]
    fn deref(&self) -> &BulkOperation<V, E, F, R> {
        &self.0
    }
}

impl<V, E, F, R> Resume for BulkRunner<V, E, F, R>
where
    V: Send + Sync,
    F: Fn(usize, &V) + Send + Sync,
    R: Receiver<V, E>,
{
    /// Runs a helper: makes calls, unless it is dropped unrun, and leaves.
    fn resume(self, call: Call) {
        if call == Call::Run {
            self.work();
        }
        self.leave();
    }
}

impl<V, E, F, R> BulkRunner<V, E, F, R>
where
    V: Send + Sync,
    F: Fn(usize, &V) + Send + Sync,
    R: Receiver<V, E>,
{
    /// Posts the helpers to the executor. Called once, by `start`.
    #[inline(never)]
    fn post_helpers(&self, executor: &ExecutorRef, count: usize) {
        // SAFETY: rule 1: no helper exists yet. `start` has asked for the environment. From the first post on, the vector itself is not touched, because
        // there are pointers into it. The helpers do not move until the operation ends, which is after all of
        // them have left; each is queued once.
        unsafe {
            let mut all = FrameMemory::vec(self.env.get().allocator().clone());
            all.extend((0..count).map(|_| Posted::new()));
            *self.helpers.get() = all;
            let helpers = (*self.helpers.get()).as_mut_ptr();
            for at in 0..count {
                let helper = NonNull::new_unchecked(helpers.add(at));
                let runnable = Posted::runnable(helper, Self(self.0));
                // A post that panics drops its helper, which leaves. The others must still be posted, because
                // the last runner waits for them.
                if let Err(panic) = Panic::catch(|| executor.post(runnable)) {
                    (*self.share.get_const()).end_with(panic);
                }
            }
        }
    }

    /// Makes calls until there are none left to claim.
    #[inline]
    fn work(&self) {
        // SAFETY: rule 2: this is a runner, and all three are read-only until every runner has left.
        let (share, value, env) =
            unsafe { (&*self.share.get_const(), &*self.value.get_const(), self.env.get()) };
        if let Some(value) = value {
            share.work(env.stop(), |range| call_each(&self.f, value, range));
        }
    }

    /// Leaves; the last runner completes the receiver.
    #[inline]
    fn leave(self) {
        // If ours is the only count left, no other thread changes it, and we need not either. Acquire: for the
        // writes of the others before they left.
        let alone = self.runners.load(Ordering::Acquire) == 1;
        if !alone && self.runners.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // SAFETY: rule 4: this is the last runner, the only user.
        let (value, share, receiver) =
            unsafe { ((*self.value.get()).take(), &mut *self.share.get(), (*self.receiver.get()).take()) };
        if let (Some(value), Some(receiver)) = (value, receiver) {
            // `end` drops the value unless it is the outcome, and that may panic.
            let outcome = Panic::catch(|| share.end(value));
            receiver.complete(outcome.unwrap_or_else(Outcome::Panicked));
        }
    }
}

/// The inner loop. It is a separate function, so that the compiler knows from its parameters that the calls
/// change neither the function nor its captures: it then loads them once and not for every index. Inlined
/// into the operation, whose cells may change at any time, the loop was measured to take about a third
/// longer.
#[inline(never)]
fn call_each<V, F: Fn(usize, &V)>(f: &F, value: &V, range: Range<usize>) {
    for index in range {
        f(index, value);
    }
}

impl<F> fmt::Debug for CallEach<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEach").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<V, E, F, R> fmt::Debug for BulkOperation<V, E, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkOperation").finish_non_exhaustive()
    }
}

impl<V, E, F, R> fmt::Debug for BulkRunner<V, E, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkRunner").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
