//! `Strand`: runs work one piece at a time and in order, over any executor.
//!
//! `turns` is the model-checked queue: a lock-free inbox and one turn. The rest of a view is in `view`. A
//! strand takes all queued work at once and runs it as a batch; a [`Limited`](crate::Limited) view with a
//! limit of one takes one piece at a time, under a lock.

pub(crate) mod turns;

use core::fmt;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{OwnerThread, RunQueue, Runnable};
use convoke_core::{Executor, Panic};

use crate::view::{Job, View, ViewQueue, impl_view_executor};
use convoke_core::raw::{contain, report_panic};
use turns::{AfterPost, NextBatch, Turns};

/// Number of pieces of work that a strand runs in a row before it queues itself again on the inner executor.
pub const RUNS_PER_TURN: usize = 256;

/// An executor that runs its work one piece at a time, in the order of posting, on another executor. It works
/// like a mutex around each piece of work, but no thread ever waits for it.
///
/// - *Serial*: no two pieces of a strand's work run at the same time, whatever the inner executor does. Each
///   piece sees what the one before it wrote.
/// - *First in, first out*, over all posters.
/// - Queuing never allocates, and no lock is held while work runs.
/// - After [`RUNS_PER_TURN`] pieces it queues itself again on the inner executor, so that other work gets a
///   turn.
/// - `dispatch` returns the work to a caller that is work of this strand if nothing is queued before it;
///   otherwise it queues the work.
/// - If the inner executor drops the strand's work, all that is queued completes as stopped. A later post
///   tries again.
/// - A panic that leaves a piece of work goes to the [handler](Strand::with_panic_handler), and the strand
///   continues.
///
/// A strand is one word and cheap to clone; clones are the same strand.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::run_on;
/// use convoke::executor::Strand;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let strand = Strand::new(pool.executor());
/// assert_eq!(strand, strand.clone());
/// assert_ne!(strand, Strand::new(pool.executor()));
/// let outcome = block_on(async move { run_on(&strand, async { "alone" }).await });
/// assert_eq!(outcome, Outcome::Value("alone"));
/// ```
pub struct Strand<X: Executor> {
    view: View<X, Batches>,
}

/// The queue of a strand, which runs work in batches.
struct Batches {
    turns: Turns,
    /// True if the batch that is being run has more work. Only the thread that runs it reads and writes this.
    more: AtomicBool,
}

/// The turn of a strand. `Turns` has one.
struct OnlyTurn(());

impl<X: Executor> Strand<X> {
    /// Creates a strand over `executor`.
    pub fn new(executor: X) -> Self {
        Self::with_panic_handler(executor, report_panic)
    }

    /// Creates a strand over `executor` that calls `handler` with panics that leave its work. The default
    /// handler writes them to standard error.
    pub fn with_panic_handler(executor: X, handler: fn(Panic)) -> Self {
        let queue = Batches { turns: Turns::new(), more: AtomicBool::new(false) };
        Self { view: View::new(executor, queue, [Job::new()], handler) }
    }

    /// Returns the inner executor.
    pub fn inner(&self) -> &X {
        self.view.inner()
    }

    /// Returns true if the caller is work of this strand. Then no other work of it runs.
    pub fn is_running_here(&self) -> bool {
        self.view.is_running_here()
    }
}

impl_view_executor!(Strand);

impl ViewQueue for Batches {
    type Turn = OnlyTurn;
    type Jobs<X: Executor> = [Job<X, Self>; 1];

    #[inline]
    fn index(_: &OnlyTurn) -> usize {
        0
    }

    #[inline]
    fn queue(&self, runnable: Runnable) -> Option<OnlyTurn> {
        (self.turns.post(runnable) == AfterPost::Schedule).then_some(OnlyTurn(()))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        !self.more.load(Ordering::Relaxed) && self.turns.is_empty()
    }

    fn run(&self, turn: OnlyTurn, on_panic: fn(Panic)) -> Option<OnlyTurn> {
        let mut left = RUNS_PER_TURN;
        loop {
            let NextBatch::Work(mut batch) = self.turns.next() else { return None };
            self.run_some(&mut batch, &mut left, on_panic);
            if left == 0 {
                self.turns.put_back(batch);
                return Some(turn);
            }
        }
    }

    fn stop(&self, _: OnlyTurn, on_panic: fn(Panic)) {
        while let NextBatch::Work(mut batch) = self.turns.next() {
            while let Some(runnable) = batch.pop() {
                contain(on_panic, || runnable.stop());
            }
        }
    }

    fn parallelism<X: Executor>(&self, _: &X) -> usize {
        1
    }
}

impl Batches {
    /// Runs work from `batch` until it is empty or `left` is 0. A panic leaves the inner loop, and the outer
    /// one re-enters it: cheaper than one `catch` for each piece.
    fn run_some(&self, batch: &mut RunQueue, left: &mut usize, on_panic: fn(Panic)) {
        while *left > 0 && !batch.is_empty() {
            contain(on_panic, || {
                while *left > 0
                    && let Some(runnable) = batch.pop()
                {
                    *left -= 1;
                    self.more.store(!batch.is_empty(), Ordering::Relaxed);
                    runnable.run();
                }
            });
        }
    }
}

impl<X: Executor> fmt::Debug for Strand<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strand({:#x} over {})", self.view.address(), core::any::type_name::<X>())
    }
}
