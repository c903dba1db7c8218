//! `sync_wait(sender)`: starts work and waits for its outcome on the calling thread, which runs a loop
//! meanwhile.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use crate::{OutcomeOf, Receiver, Sender};
use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::{live_thread_mark, thread_local};
use convoke_core::raw::{Call, Header, Runnable, Slot, WorkKind, WorkRef};
use convoke_core::{Env, Executor, ExecutorRef, Outcome};

use convoke_exec::RunLoopExecutor;
use convoke_exec::raw::Runner;

/// Starts the work and waits for its outcome on the calling thread.
///
/// The executor of the work's environment is a run loop on this thread. The loop runs what is posted to it,
/// and the thread sleeps when there is nothing to do. Work that completes inline costs no allocation and no
/// system call.
///
/// - *Completes with* the outcome: value, error or stopped, never `Panicked`.
/// - *Runs on* the calling thread.
/// - *Panics* if the work panics: the panic continues in the caller.
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
    // The environment borrows the handle of the loop without counting it: this function owns the handle and
    // outlives the work.
    // SAFETY: `env` is never dropped, so the copy of the handle in it is not either, and the original is
    // given back below. The other fields of this environment are empty and need no drop.
    let env = ManuallyDrop::new(Env::on(ExecutorRef::new(unsafe { ptr::read(&*executor) })));
    let outcome = wait(sender, &env, &executor);
    give_back(ManuallyDrop::into_inner(executor));
    outcome.resume_panic()
}

/// Starts the work in a changed environment (a stop token, locals, another executor) and waits for its
/// outcome on the calling thread. See [`sync_wait`].
///
/// - *Completes with* the outcome: value, error or stopped, never `Panicked`.
/// - *Runs on* the calling thread, or on the executor that `changes` sets.
/// - *Panics* if the work panics: the panic continues in the caller.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::env::Changes;
///
/// let source = StopSource::new();
/// source.request_stop(StopReason::Requested);
/// let changes = Changes::new().stop_token(source.token());
/// let outcome = sync_wait_with(changes, never::<u32>());
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
#[track_caller]
fn wait<S>(sender: S, env: &Env, executor: &RunLoopExecutor) -> OutcomeOf<S>
where
    S: Sender,
    S::Value: Send,
    S::Error: Send,
{
    let mut state = Waiting::<S> {
        header: Header::new(const { &WorkKind::new(Waiting::<S>::arrived) }),
        env,
        executor,
        waiter: live_thread_mark(),
        done: Cell::new(false),
        outcome: UnsafeCell::new(None),
    };
    // Destroyed by hand below, at one point: with a second drop at the end of the scope the compiler no
    // longer sees through it, and emits every store of an inline graph.
    let operation = ManuallyDrop::new(Slot::new());
    let mut panic = None;
    // SAFETY: the slot is on this stack and not moved. This function returns only after the receiver was
    // completed, and nothing unwinds before that: `start` must not, and `run_until_done` catches the panics of
    // what it runs. The loop is run here, by the thread that has taken it for this wait, and by no other.
    unsafe {
        Slot::run(NonNull::from(&*operation), || {
            sender.connect(WaitReceiver { state: WorkRef::new(NonNull::from(&state)) })
        });
        if !state.done.get() {
            panic = Runner::new().run_until_done(executor.shared(), || state.done.get());
        }
    };
    // Rule 1: `done` is set, so the outcome belongs to the waiter, and nothing points to the state any more.
    let outcome = state.outcome.get_mut().take().expect("the outcome is stored before `done` is set");
    // SAFETY: `done` is set, so the operation has completed its receiver, and nothing uses it any more.
    let outcome = unsafe { operation.clear_after(outcome) };
    // A panic is part of the outcome here: the loop is given back before the panic continues.
    match panic {
        None => outcome,
        Some(panic) => outcome.or_panic(panic),
    }
}

/// The shared state of receiver and waiter, on the stack of the waiting thread.
///
/// 1. `outcome` belongs to the receiver until it has set `done` or posted the header; from then on to the
///    waiter.
/// 2. Only the waiting thread touches `done`. The other fields are read-only.
#[repr(C)]
struct Waiting<'a, S: Sender> {
    // First, so that a pointer to the header is a pointer to the whole state.
    header: Header,
    env: &'a Env,
    executor: &'a RunLoopExecutor,
    /// The mark of the waiting thread. It is compared only while that thread waits, hence is alive.
    waiter: usize,
    done: Cell<bool>,
    outcome: UnsafeCell<Option<OutcomeOf<S>>>,
}

impl<S: Sender> Waiting<'_, S> {
    /// Sets `done`.
    ///
    /// # Safety
    /// Called once, with the header of a `Waiting`, by its runnable. It runs on the waiting thread: the loop
    /// that it is posted to is open, and run by that thread, until `done` is set.
    unsafe fn arrived(header: NonNull<Header>, _: Call) {
        // SAFETY: the header is the first field (`repr(C)`), and the waiter returns only after `done` is set.
        unsafe { header.cast::<Self>().as_ref() }.done.set(true);
    }
}

/// The receiver of the work. The waiter, on whose stack the state is, returns only after `done` is set, which happens
/// after the last use of this receiver: last in `complete`, or in `arrived`.
struct WaitReceiver<'a, S: Sender> {
    state: WorkRef<Waiting<'a, S>>,
}

// SAFETY: rule 1 lets another thread write the outcome if the outcome is `Send`, and `sync_wait` requires
// that.
unsafe impl<S: Sender> Send for WaitReceiver<'_, S> {}

impl<S: Sender> Receiver<S::Value, S::Error> for WaitReceiver<'_, S> {
    #[inline]
    fn complete(self, outcome: Outcome<S::Value, S::Error>) {
        // SAFETY: the waiter returns only after `done` is set, which happens last here or in `arrived`. Rule
        // 1: the outcome is ours until then.
        unsafe {
            let state = &*self.state;
            *state.outcome.get() = Some(outcome);
            if state.waiter == live_thread_mark() {
                state.done.set(true);
                return;
            }
            // Our own handle: the waiter may be gone before `post` has returned.
            let executor = state.executor.clone();
            executor.post(Runnable::new(self.state.pointer().cast()));
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        self.state.env
    }
}

impl<S: Sender> fmt::Debug for WaitReceiver<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitReceiver")
    }
}

thread_local! {
    /// The loop of the last `sync_wait` on this thread, reused by the next one.
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

/// Stores the loop for the next `sync_wait`, unless other handles to it exist. In that case it is closed, so
/// that what is posted through those handles is stopped, and not run by an unrelated `sync_wait`.
#[inline]
fn give_back(executor: RunLoopExecutor) {
    if executor.is_unused() {
        // While the thread ends, its thread locals are gone, and the loop is dropped.
        let _ = SPARE.try_with(|spare| spare.set(Some(executor)));
    } else {
        retire(executor);
    }
}

#[cold]
fn retire(executor: RunLoopExecutor) {
    // SAFETY: `sync_wait` has returned from running the loop, on the only thread that runs it, and gives it
    // up here.
    unsafe { executor.close() };
}
