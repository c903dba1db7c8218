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

/// Runs a future on the calling thread until it has ended: the root of a chain, on a run loop of its own. For `main` without the
/// attribute, for tests, and for threads of foreign libraries. In a task, `await` the future instead.
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

/// Runs a future on the calling thread until it has ended, in a changed environment: with a stop token, locals, a frame allocator.
/// The executor is the run loop's, whatever the changes say.
///
/// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
/// - *Runs on* the calling thread.
/// - *Panics* if the future does.
#[track_caller]
pub fn block_on_with<F: Future>(changes: Changes, future: F) -> Outcome<F::Output> {
    let run_loop = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let outcome = run_loop.block_on_with(changes, future);
    // One that others still have a handle of is closed: what is posted to it is stopped, and not run by a stranger.
    if run_loop.is_unused() {
        let _ = SPARE.try_with(|spare| spare.set(Some(run_loop)));
    }
    outcome
}

thread_local! {
    /// The loop of the last `block_on` of this thread, for the next one.
    static SPARE: Cell<Option<RunLoop>> = Cell::new(None);
}

/// Runs a future on a run loop until it has ended.
pub trait BlockOn {
    /// Runs the loop on this thread until the future has ended: a chain of its own, which stays on this thread. The future need be
    /// neither `Send` nor `'static`. Other work of the loop runs meanwhile, and stays queued afterwards.
    ///
    /// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future did, or other work of the loop, or if there is no memory for the task: the panic goes on here,
    ///   after the future has ended.
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

    /// As [`block_on`](BlockOn::block_on), in a changed environment: with a stop token, locals, a frame allocator. The executor is
    /// this loop's, whatever the changes say.
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
        let mut room = MaybeUninit::<Waiting<F::Output>>::uninit();
        let waiting = NonNull::from(&mut room).cast::<Waiting<F::Output>>();
        // SAFETY: the room is on this stack and not moved, and we leave only after the task has delivered: nothing in between
        // unwinds, as what runs on the loop is caught. The ground is the first field (`repr(C)`).
        let waiting = unsafe {
            waiting.write(Waiting {
                ground: RootParent::new(waiting.cast(), env, None),
                outcome: UnsafeCell::new(None),
                done: Cell::new(false),
            });
            waiting.as_ref()
        };
        let started = self.at_home(|| {
            // SAFETY: this thread is the owner thread of the loop. The future is dropped before the task delivers, and so
            // outlived by all that it borrows.
            unsafe { waiting.ground.start(future, ToStack(NonNull::from(waiting)), true, location) }
        });
        let (panic, outcome) = match started {
            Ok(()) => {
                let panic = self.run_until(|| waiting.done.get());
                // SAFETY: the task has delivered, and so nobody else is here.
                (panic, unsafe { (*waiting.outcome.get()).take() })
            }
            Err(future) => {
                drop(future);
                (None, Some(Outcome::Panicked(no_memory::<F>(location))))
            }
        };
        // SAFETY: the task, if there was one, has ended.
        unsafe { room.assume_init_drop() };
        let outcome = outcome.expect("kept before it was done").resume_panic();
        match panic {
            Some(panic) => panic.resume(),
            None => outcome,
        }
    }
}

/// What the task leads to, on the stack of the thread that runs it.
#[repr(C)]
struct Waiting<T> {
    /// First, so that its address is that of all of it.
    ground: RootParent,
    outcome: UnsafeCell<Option<Outcome<T>>>,
    done: Cell<bool>,
}

/// The outcome goes to the stack.
struct ToStack<T>(NonNull<Waiting<T>>);

// SAFETY: the task is not freed by what is done here. All of it happens at home: on the thread that waits.
unsafe impl<T> Ending<T> for ToStack<T> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<T>>) {
        // SAFETY: whoever waits is there until we have delivered; called once.
        unsafe { self.0.as_ref().ground.ended() };
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known {
        // SAFETY: as above; the outcome is there, and taken once.
        unsafe {
            let waiting = self.0.as_ref();
            *waiting.outcome.get() = Some(room.read());
            waiting.done.set(true);
        }
        Known::ToTheParent
    }
}
