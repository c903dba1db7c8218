//! `sync_wait(sender)`: starts work and waits for its outcome on this thread, which meanwhile runs a loop.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::{live_thread_mark, thread_local};
use convoke_core::raw::{Call, Header, Runnable, Slot, WorkKind};
use convoke_core::{Env, Executor, ExecutorRef, Outcome};

use convoke_exec::RunLoopExecutor;
use convoke_exec::raw::Runner;

/// Starts the work and waits for its outcome, on this thread.
///
/// The executor of the work's environment is a run loop on this thread; it runs what is posted there. Work that
/// completes inline costs no allocation and no system call. The thread sleeps when there is nothing to do.
///
/// - *Completes with* the outcome: value, error or stopped. It is never `Panicked`.
/// - *Runs on* the calling thread.
/// - *Panics* if the work panicked: the panic goes on here.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(20).then(|v| v + 1)), Outcome::Value(21));
/// ```
#[inline]
#[track_caller]
pub fn sync_wait<S>(sender: S) -> OutcomeOf<S>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    let executor = ManuallyDrop::new(spare_loop());
    // The environment borrows the handle of the loop, without counting: we own it and outlive the work.
    // SAFETY: neither copy is dropped as such; the handle is given back below. All else in this environment is empty
    // and has nothing to drop.
    let env = ManuallyDrop::new(Env::on(ExecutorRef::new(unsafe { ptr::read(&*executor) })));
    let outcome = wait(sender, &env, &executor);
    give_back(ManuallyDrop::into_inner(executor));
    outcome.resume_panic()
}

/// The same in a changed environment: with a stop token, locals, another executor.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::env::Changes;
///
/// let source = StopSource::new();
/// source.request_stop(StopReason::Requested);
/// let outcome = sync_wait_with(Changes::new().stop_token(source.token()), never::<u32>());
/// assert_eq!(outcome, Outcome::Stopped);
/// ```
#[track_caller]
pub fn sync_wait_with<S>(changes: Changes, sender: S) -> OutcomeOf<S>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    let executor = spare_loop();
    let env = Env::from(executor.clone()).with(changes);
    let outcome = wait(sender, &env, &executor);
    drop(env);
    give_back(executor);
    outcome.resume_panic()
}

#[inline]
fn wait<S>(sender: S, env: &Env, executor: &RunLoopExecutor) -> OutcomeOf<S>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    let state = Waiting::<S> {
        header: Header::new(const { &WorkKind::new(Waiting::<S>::arrived) }),
        env,
        executor,
        waiter: live_thread_mark(),
        done: Cell::new(false),
        outcome: UnsafeCell::new(None),
    };
    // Destroyed by hand below, in one place: with a second one for the end of the scope the compiler no longer sees
    // through it, and keeps every store of an inline graph.
    let operation = ManuallyDrop::new(Slot::new());
    // SAFETY: the slot is on this stack and not moved; we leave only after the receiver was completed, and nothing
    // in between unwinds: `start` must not, and what runs on the loop is caught.
    unsafe {
        Slot::run(NonNull::from(&*operation), || {
            sender.connect(WaitReceiver { state: NonNull::from(&state) })
        })
    };
    let mut panic = None;
    if !state.done.get() {
        panic = Runner::new().run_until(executor.shared(), || state.done.get());
    }
    // SAFETY: the receiver was completed, on this thread or before `arrived` was run on it.
    let outcome = unsafe { (*state.outcome.get()).take() }.expect("kept before it was done");
    // SAFETY: it has completed.
    let outcome = unsafe { operation.clear_after(outcome) };
    // A panic is no more than an outcome here: the loop is given back before it goes on.
    match panic {
        None => outcome,
        Some(panic) => outcome.or_panic(panic),
    }
}

/// What the receiver leads to, on the stack of the waiting thread.
///
/// 1. `outcome` belongs to the receiver until it has set `done` or posted the header; from then on to the waiter.
/// 2. `done` and `waiter`'s own things are touched by the waiting thread alone.
#[repr(C)]
struct Waiting<'a, S: Sender> {
    // First, so that a pointer to it is a pointer to all of it.
    header: Header,
    env: &'a Env,
    executor: &'a RunLoopExecutor,
    /// Compared while the waiting thread is alive: it waits.
    waiter: usize,
    done: Cell<bool>,
    outcome: UnsafeCell<Option<OutcomeOf<S>>>,
}

impl<S: Sender> Waiting<'_, S> {
    /// # Safety
    /// Called once, with the header of a `Waiting`, by its runnable: on the waiting thread, for the loop it is posted
    /// to is open, and run by that thread, until `done`.
    unsafe fn arrived(header: NonNull<Header>, _: Call) {
        // SAFETY: the header is the first field (`repr(C)`), and the waiter leaves only after `done`.
        unsafe { header.cast::<Self>().as_ref() }.done.set(true);
    }
}

struct WaitReceiver<'a, S: Sender> {
    state: NonNull<Waiting<'a, S>>,
}

// SAFETY: what it leads to may be used from another thread by rule 1, if the outcome may be sent: `sync_wait` asks for
// that.
unsafe impl<S: Sender> Send for WaitReceiver<'_, S> {}

impl<S: Sender> Receiver<S::Value, S::Error> for WaitReceiver<'_, S> {
    #[inline]
    fn complete(self, outcome: Outcome<S::Value, S::Error>) {
        // SAFETY: the waiter leaves only after `done`, which is set in the last lines; rule 1.
        unsafe {
            let state = self.state.as_ref();
            *state.outcome.get() = Some(outcome);
            if state.waiter == live_thread_mark() {
                state.done.set(true);
                return;
            }
            // A handle of our own: the waiter may be gone before `post` has returned.
            let executor = state.executor.clone();
            executor.post(Runnable::new(self.state.cast()));
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: the waiter, and so its environment, is there until we are completed.
        unsafe { self.state.as_ref() }.env
    }
}

impl<S: Sender> fmt::Debug for WaitReceiver<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitReceiver")
    }
}

thread_local! {
    /// The loop of the last `sync_wait` on this thread, for the next one.
    static SPARE: Cell<Option<RunLoopExecutor>> = Cell::new(None);
}

#[inline]
fn spare_loop() -> RunLoopExecutor {
    SPARE.try_with(Cell::take).ok().flatten().unwrap_or_else(new_loop)
}

#[cold]
fn new_loop() -> RunLoopExecutor {
    RunLoopExecutor::new()
}

/// Keeps the loop for the next `sync_wait`, unless somebody else has kept a handle: then it is closed, so that what
/// is posted through that handle is stopped and not run by a stranger.
#[inline]
fn give_back(executor: RunLoopExecutor) {
    if executor.is_unused() {
        // While the thread ends there is no place to keep it, and it is dropped.
        let _ = SPARE.try_with(|spare| spare.set(Some(executor)));
    } else {
        retire(executor);
    }
}

#[cold]
fn retire(executor: RunLoopExecutor) {
    // SAFETY: `sync_wait` has returned from running it and gives it up, on the one thread that it was for.
    unsafe { executor.close() };
}
