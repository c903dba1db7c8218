//! `block_on(future)`: runs a future on the calling thread until it has ended. The future need not be `Send`.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;

use convoke_core::env::Changes;
use convoke_core::raw::FrameArc;
use convoke_core::raw::sync::thread_local;
use convoke_core::{Env, ExecutorRef, FrameAllocator, Outcome};
use convoke_exec::RunLoop;

use super::root_parent::{RootEnd, RootParent};
use crate::task::{Spawnable, no_memory};

/// Runs a future on the calling thread until it has ended, as the root task of a run loop of its own. For
/// `main` without the attribute, for tests, and for threads of foreign libraries. In a task, `await` the
/// future instead.
///
/// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
/// - *Runs on* the calling thread.
/// - *Panics* if the future does.
///
/// ```
/// use convoke::prelude::*;
///
/// let outcome = convoke::block_on(async {
///     scope(async |s| s.spawn_future(async { 6 * 7 }).await).await
/// });
/// assert_eq!(outcome, Outcome::Value(42));
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> Outcome<F::Output> {
    block_on_with(Changes::new(), future)
}

/// Runs a future on the calling thread until it has ended, in a changed environment: with a stop token,
/// locals, a frame allocator. The executor is the run loop's, whatever the changes say.
///
/// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
/// - *Runs on* the calling thread.
/// - *Panics* if the future does.
#[track_caller]
pub fn block_on_with<F: Future>(changes: Changes, future: F) -> Outcome<F::Output> {
    let run_loop = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let outcome = run_loop.block_on_with(changes, future);
    // A loop that others have a handle of is not reused: it is closed, so that what is posted to it is
    // stopped and not run by a later `block_on`.
    if run_loop.is_unused() {
        let _ = SPARE.try_with(|spare| spare.set(Some(run_loop)));
    }
    outcome
}

/// A future without a type.
pub type BoxedFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs a type-erased future on this loop, or on a new one. The code of its task is compiled here, once:
/// that of [`block_on_with`] is compiled again for every type of future.
///
/// # Panics
/// As [`block_on_with`].
#[track_caller]
pub fn block_on_boxed(run_loop: Option<&RunLoop>, changes: Changes, future: BoxedFuture<'_>) -> Outcome<()> {
    match run_loop {
        Some(run_loop) => run_loop.block_on_with(changes, future),
        None => block_on_with(changes, future),
    }
}

thread_local! {
    /// The loop of the last `block_on` of this thread, cached for the next one.
    static SPARE: Cell<Option<RunLoop>> = Cell::new(None);
}

/// Extension of [`RunLoop`]: runs a future on the loop until it has ended.
pub trait BlockOn {
    /// Runs the loop on this thread until the future has ended, as a root task that stays on this thread. The
    /// future need be neither `Send` nor `'static`. Other work of the loop runs meanwhile, and stays queued
    /// afterwards.
    ///
    /// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future did, or other work of the loop, or if there is no memory for the task: the
    ///   panic is resumed here after the future has ended.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use convoke::prelude::*;
    /// use convoke::executor::{BlockOn, RunLoop};
    ///
    /// let run_loop = RunLoop::new();
    /// let shared = Rc::new(41);
    /// let outcome = run_loop.block_on(async {
    ///     checkpoint().await;
    ///     *shared + 1
    /// });
    /// assert_eq!(outcome, Outcome::Value(42));
    /// ```
    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.block_on_with(Changes::new(), future)
    }

    /// Runs the loop on this thread until the future has ended, in a changed environment: with a stop token,
    /// locals, a frame allocator. The executor is this loop's, whatever the changes say. Otherwise as
    /// [`block_on`](BlockOn::block_on).
    ///
    /// # Panics
    /// As [`block_on`](BlockOn::block_on).
    #[track_caller]
    fn block_on_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output>;
}

impl BlockOn for RunLoop {
    #[track_caller]
    fn block_on_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output> {
        let location = Location::caller();
        let executor = ExecutorRef::new(self.executor());
        let env = Env::on(executor.clone()).with(changes.executor(executor));
        let waiting = Waiting { outcome: Cell::new(None), done: Cell::new(false) };
        let Some(root) = RootParent::new(&FrameAllocator::recycling(), env, None, waiting) else {
            no_memory::<F>(location).resume()
        };
        // SAFETY: this function returns only after the task has ended, and its future is gone: nothing in
        // between unwinds, as panics on the loop are caught.
        let future = unsafe { Spawnable::borrowing_here(future) };
        let started = self.on_owner_thread(|| RootParent::start(&root, future, ToWaiting, location));
        let panic = match started {
            Ok(()) => self.run_until_done(|| root.done.get()),
            Err(future) => {
                drop(future);
                root.outcome.set(Some(Outcome::Panicked(no_memory::<F>(location))));
                None
            }
        };
        let outcome = root.outcome.take();
        drop(root);
        let outcome = outcome.expect("the outcome is stored before `done` is set").resume_panic();
        match panic {
            Some(panic) => panic.resume(),
            None => outcome,
        }
    }
}

/// The state that the task and the waiting thread share. Both are on one thread.
struct Waiting<T> {
    outcome: Cell<Option<Outcome<T>>>,
    done: Cell<bool>,
}

/// Stores the outcome for the waiting thread.
struct ToWaiting;

impl<T> RootEnd<Waiting<T>, T> for ToWaiting {
    fn tell(self, root: FrameArc<RootParent<Waiting<T>>>, outcome: Outcome<T>) {
        root.outcome.set(Some(outcome));
        root.done.set(true);
    }
}
