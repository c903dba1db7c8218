//! `RunLoop::block_on(future)`: runs the loop until one future has ended, which need not be `Send`.

use core::cell::Cell;
use core::future::Future;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::NonNull;

use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, ExecutorRef, Outcome};

use super::RunLoop;
use crate::launch::Ground;
use crate::task::{Ending, Known, TaskHeader, no_memory};

impl RunLoop {
    /// Runs the loop on this thread until the future has ended: a chain of its own, at home on this loop. The future need be
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
    pub fn block_on<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.block_on_with(Changes::new(), future)
    }

    /// The same in a changed environment: with a stop token, locals, a frame allocator. The executor is this loop's, whatever
    /// the changes say.
    ///
    /// # Panics
    /// As [`block_on`](RunLoop::block_on).
    #[track_caller]
    pub fn block_on_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output> {
        let location = Location::caller();
        let executor = ExecutorRef::new(self.executor());
        let env = Env::new().with(changes.executor(executor));
        let mut room = MaybeUninit::<Waiting<F::Output>>::uninit();
        let waiting = NonNull::from(&mut room).cast::<Waiting<F::Output>>();
        // SAFETY: the room is on this stack and not moved, and we leave only after the task has delivered: nothing in between
        // unwinds, as what runs on the loop is caught. The ground is the first field (`repr(C)`).
        let waiting = unsafe {
            waiting.write(Waiting {
                ground: Ground::new(waiting.cast(), env, None),
                outcome: UnsafeCell::new(None),
                done: Cell::new(false),
            });
            waiting.as_ref()
        };
        let started = {
            // SAFETY: the loop is this thread's, as it is not `Send`, and borrowed; nobody closes it now.
            let _home = unsafe { self.executor.shared.home.enter() };
            // SAFETY: this thread is at home. The future is dropped before the task delivers, and so outlived by all that it
            // borrows.
            unsafe { waiting.ground.start(future, ToStack(NonNull::from(waiting)), true, location) }
        };
        let (panic, outcome) = match started {
            Ok(()) => {
                let panic = self.runner.run_until(&self.executor.shared, || waiting.done.get());
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
    ground: Ground,
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
