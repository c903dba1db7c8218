//! `block_on(future)`: runs a future on the calling thread until it has ended. The future need not be `Send`.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::future::Future;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::NonNull;

use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::thread_local;
use convoke_core::{Env, ExecutorRef, Outcome};
use convoke_exec::RunLoop;

use super::root_parent::RootParent;
use crate::task::{Ending, Known, TaskHeader, no_memory};

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
        let env = Env::new().with(changes.executor(executor));
        let mut storage = MaybeUninit::<Waiting<F::Output>>::uninit();
        let waiting = NonNull::from(&mut storage).cast::<Waiting<F::Output>>();
        // SAFETY: `storage` is on this stack and does not move, and this function returns only after the task
        // has delivered: nothing in between unwinds, as panics on the loop are caught. The root parent is the
        // first field (`repr(C)`).
        let waiting = unsafe {
            waiting.write(Waiting {
                root: RootParent::new(waiting.cast(), env, None),
                outcome: UnsafeCell::new(None),
                done: Cell::new(false),
            });
            waiting.as_ref()
        };
        let started = self.on_owner_thread(|| {
            // SAFETY: this is the owner thread of the loop. The future is dropped before the task delivers,
            // and so outlived by all that it borrows.
            unsafe { waiting.root.start(future, ToStack(NonNull::from(waiting)), true, location) }
        });
        let (panic, outcome) = match started {
            Ok(()) => {
                let panic = self.run_until(|| waiting.done.get());
                // SAFETY: rule 2 of `Waiting`: the task has delivered.
                (panic, unsafe { (*waiting.outcome.get()).take() })
            }
            Err(future) => {
                drop(future);
                (None, Some(Outcome::Panicked(no_memory::<F>(location))))
            }
        };
        // SAFETY: it was initialised above, and the task, if there was one, has left.
        unsafe { storage.assume_init_drop() };
        let outcome = outcome.expect("the outcome is stored before `done` is set").resume_panic();
        match panic {
            Some(panic) => panic.resume(),
            None => outcome,
        }
    }
}

/// The parent of the task, on the stack of the thread that runs it.
/// 1. Until the task has delivered, `outcome` belongs to the task.
/// 2. Afterwards it belongs to the waiting thread. Both are this thread.
#[repr(C)]
struct Waiting<T> {
    /// First, so that a pointer to the root parent is a pointer to this.
    root: RootParent,
    outcome: UnsafeCell<Option<Outcome<T>>>,
    done: Cell<bool>,
}

/// The ending that puts the outcome on the stack of the waiting thread.
struct ToStack<T>(NonNull<Waiting<T>>);

// SAFETY: nothing here frees the task. All of it happens on the owner thread, which waits.
unsafe impl<T> Ending<T> for ToStack<T> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<T>>) {
        // SAFETY: the waiting thread keeps its stack until the task has delivered; the task calls this once.
        unsafe { self.0.as_ref().root.ended() };
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, slot: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the waiting thread keeps its stack until `done` is set. Rule 1 of `Waiting`; the outcome is
        // in the slot, and is taken once.
        unsafe {
            let waiting = self.0.as_ref();
            *waiting.outcome.get() = Some(slot.read());
            waiting.done.set(true);
        }
        Known::ToTheParent
    }
}
