//! `bulk(n, f)`: calls a function with every index, in parallel if the executor can.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::ops::Range;
use core::pin::Pin;
use core::ptr::NonNull;

use super::bulk_share::Share;
use super::trampoline::Enclosing;
use crate::operation::EnvAbove;
use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::Slot;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::{Call, Header, Runnable, WorkKind};
use convoke_core::{Env, Executor, ExecutorRef, Outcome, Panic};

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
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Bulk<S, F> {
    sender: S,
    count: usize,
    f: F,
}

impl<S, F> Bulk<S, F> {
    pub(crate) fn new(sender: S, count: usize, f: F) -> Self {
        Self { sender, count, f }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the last runner completes the receiver last, when all others have left.
// Rule 3: the runners are the completion of the sender before and helpers on the executor that it completes
// on.
#[diagnostic::do_not_recommend]
unsafe impl<S, F> Sender for Bulk<S, F>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
{
    type Value = S::Value;
    type Error = S::Error;
    // Not inline, because helpers may still run; but all of them are on the executor.
    const COMPLETES: Completes = S::COMPLETES.and(Completes::Here);
    type Operation<R: Receiver<S::Value, S::Error>> = BulkOperation<S, F, R>;

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> BulkOperation<S, F, R> {
        BulkOperation {
            first: Slot::new(),
            sender: UnsafeCell::new(Some(self.sender)),
            executor: UnsafeCell::new(None),
            count: self.count,
            f: self.f,
            value: UnsafeCell::new(None),
            share: UnsafeCell::new(Share::new(0, 1)),
            runners: AtomicUsize::new(0),
            helpers: UnsafeCell::new(Box::new([])),
            env: EnvAbove::new(),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        self.sender.completes_on(env)
    }
}

/// The operation of `bulk`.
///
/// 1. Until the sender before has completed, first `start` and then its completion is the only user of
///    everything.
/// 2. From then on all runners read `value`, `share` and `env` through `&`, until each has left. The thread
///    on which the value arrived is a runner too, and leaves after it has posted all helpers.
/// 3. A helper belongs to the holder of its runnable.
/// 4. The last runner to leave is the only user of everything, and completes the receiver.
pub struct BulkOperation<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    first: Slot<S::Operation<BulkReceiver<S, F, R>>>,
    sender: UnsafeCell<Option<S>>,
    executor: UnsafeCell<Option<ExecutorRef>>,
    count: usize,
    f: F,
    value: UnsafeCell<Option<S::Value>>,
    share: UnsafeCell<Share>,
    runners: AtomicUsize,
    helpers: UnsafeCell<Box<[Helper]>>,
    env: EnvAbove,
    receiver: UnsafeCell<Option<R>>,
    _pinned: PhantomPinned,
}

/// The unit that is posted to the executor.
#[repr(C)]
struct Helper {
    // First, so that a pointer to it is a pointer to the helper.
    header: Header,
    operation: NonNull<()>,
}

// SAFETY: the pointer leads to the operation, which is `Send`.
unsafe impl Send for Helper {}

// SAFETY: all parts are `Send`, and those that runners share (rule 2) are `Sync`; rules 1 and 4 give the rest
// to one thread at a time.
unsafe impl<S, F, R> Sync for BulkOperation<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
}

impl<S, F, R> Operation for BulkOperation<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 1: everything is ours until the child starts, and nothing is touched afterwards. The
        // operation is pinned.
        unsafe {
            let operation = this.as_ref();
            if let (Some(sender), Some(receiver)) =
                ((*operation.sender.get()).take(), &*operation.receiver.get_const())
            {
                operation.env.ask(receiver);
                *operation.executor.get() = sender.completes_on(operation.env.get());
                let receiver = BulkReceiver { operation: this };
                Slot::run(NonNull::from(&operation.first), || sender.connect(receiver));
            }
        }
    }
}

impl<S, F, R> BulkOperation<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    /// Spreads the calls, and makes a share of them.
    ///
    /// # Safety
    /// Called once, when the child has completed (rule 1). The caller touches nothing afterwards.
    #[inline]
    unsafe fn spread(this: NonNull<Self>, value: S::Value) {
        // SAFETY: rule 1 until the first helper is posted, then rule 2: this call is a runner until `leave`.
        unsafe {
            let operation = this.as_ref();
            *operation.value.get() = Some(value);
            let executor = (*operation.executor.get()).take();
            let width = Panic::catch(|| executor.as_ref().map_or(1, Executor::parallelism));
            let (width, broken) = match width {
                Ok(width) => (width, None),
                Err(panic) => (1, Some(panic)),
            };
            let runners = width.min(operation.count).max(1);
            *operation.share.get() = Share::new(operation.count, runners);
            if let Some(panic) = broken {
                (*operation.share.get_const()).end_with(panic);
            }
            // Relaxed: posting the helpers publishes it.
            operation.runners.store(runners, Ordering::Relaxed);
            if let Some(executor) = executor
                && runners > 1
            {
                Self::post_helpers(this, &executor, runners - 1);
            }
            operation.work();
            Self::leave(this);
        }
    }

    /// Posts the helpers to the executor.
    ///
    /// # Safety
    /// Called once, by the first runner, before it leaves (rules 1 and 2).
    #[inline(never)]
    unsafe fn post_helpers(this: NonNull<Self>, executor: &ExecutorRef, count: usize) {
        let helper =
            || Helper { header: Header::new(const { &WorkKind::new(Self::help) }), operation: this.cast() };
        // SAFETY: rule 1: no helper exists yet. They are not moved until the operation ends, which is after
        // all of them have left. From the first post on, the box itself is not touched, because there are
        // pointers into it.
        unsafe {
            *this.as_ref().helpers.get() = (0..count).map(|_| helper()).collect();
            let helpers = (*this.as_ref().helpers.get()).as_mut_ptr();
            for at in 0..count {
                let runnable = Runnable::new(NonNull::new_unchecked(helpers.add(at)).cast());
                // A post that panics drops its helper, which leaves. The others must still be posted, because
                // the last runner waits for them.
                if let Err(panic) = Panic::catch(|| executor.post(runnable)) {
                    (*this.as_ref().share.get_const()).end_with(panic);
                }
            }
        }
    }

    /// Runs a helper: makes calls, unless it is dropped unrun, and leaves.
    ///
    /// # Safety
    /// Called once for each helper, by its runnable.
    unsafe fn help(header: NonNull<Header>, call: Call) {
        // SAFETY: rule 3: the helper is ours. The header is its first field (`repr(C)`), and the pointer was
        // made from the whole helper. The operation is alive until this runner leaves.
        unsafe {
            let this = header.cast::<Helper>().as_ref().operation.cast::<Self>();
            if call == Call::Run {
                this.as_ref().work();
            }
            Self::leave(this);
        }
    }

    /// Makes calls until there are none left to claim.
    ///
    /// # Safety
    /// Rule 2: the caller is a runner.
    #[inline]
    unsafe fn work(&self) {
        // SAFETY: rule 2: the caller is a runner, and all three are read-only until every runner has left.
        let (share, value, env) =
            unsafe { (&*self.share.get_const(), &*self.value.get_const(), self.env.get()) };
        if let Some(value) = value {
            share.work(env.stop(), |range| call_each(&self.f, value, range));
        }
    }

    /// Leaves; the last runner completes the receiver.
    ///
    /// # Safety
    /// The caller is a runner (rule 2), and touches nothing afterwards.
    #[inline]
    unsafe fn leave(this: NonNull<Self>) {
        // SAFETY: rule 2 until the count is given back; rule 4 for the last runner.
        unsafe {
            let operation = this.as_ref();
            // If ours is the only count left, no other thread changes it, and we need not either. Acquire:
            // for the writes of the others before they left.
            let alone = operation.runners.load(Ordering::Acquire) == 1;
            if alone || operation.runners.fetch_sub(1, Ordering::AcqRel) == 1 {
                let value = (*operation.value.get())
                    .take()
                    .expect("the value is stored before the first runner runs");
                // `end` drops the value unless it is the outcome, and that may panic.
                let outcome = Panic::catch(|| (*operation.share.get()).end(value));
                let outcome = outcome.unwrap_or_else(Outcome::Panicked);
                if let Some(receiver) = (*operation.receiver.get()).take() {
                    receiver.complete(outcome);
                }
            }
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

/// The receiver of the sender before: a pointer to the operation.
pub struct BulkReceiver<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    operation: NonNull<BulkOperation<S, F, R>>,
}

// SAFETY: the operation is `Send`, and rule 1 makes the completion of the sender before its only user.
unsafe impl<S, F, R> Send for BulkReceiver<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
}

#[diagnostic::do_not_recommend]
impl<S, F, R> Receiver<S::Value, S::Error> for BulkReceiver<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    #[inline]
    fn complete(self, outcome: Outcome<S::Value, S::Error>) {
        // SAFETY: rule 1: the child has completed, so this call is the only user. The operation is alive
        // until its receiver is completed.
        unsafe {
            let operation = self.operation.as_ref();
            let outcome = operation.first.clear_after(outcome);
            if let Outcome::Value(value) = outcome {
                return BulkOperation::spread(self.operation, value);
            }
            if let Some(receiver) = (*operation.receiver.get()).take() {
                receiver.complete(outcome);
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 1: the child has not completed, so the operation is alive and its receiver is not
        // moved.
        unsafe { self.operation.as_ref().env.get() }
    }

    #[inline]
    fn enclosing(&self) -> Option<Enclosing> {
        // SAFETY: rule 1: the child is running, and `env.ask` was called before it started.
        unsafe { self.operation.as_ref().env.enclosing() }
    }
}

impl<S, F, R> fmt::Debug for BulkOperation<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkOperation").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<S, F, R> fmt::Debug for BulkReceiver<S, F, R>
where
    S: Sender<Value: Send + Sync>,
    F: Fn(usize, &S::Value) + Send + Sync,
    R: Receiver<S::Value, S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
