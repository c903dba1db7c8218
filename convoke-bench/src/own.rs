//! Convoke's own operations, driven through the low-level API, without a scope or a task around them: so only
//! the executor is measured.

#![allow(unsafe_code)]

mod boxed_batch;
mod one_thread;
mod posts;
mod rounds;

pub(crate) use boxed_batch::BoxedBatch;
pub(crate) use one_thread::{Convoke, InScope, run_with};
pub(crate) use posts::post_batches;
pub(crate) use rounds::keep_posting;

use std::cell::UnsafeCell;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use convoke::env::Env;
use convoke::executor::ExecutorRef;
use convoke::raw::Slot;
use convoke::sender::algorithm::schedule::Schedule;
use convoke::sender::algorithm::schedule::Scheduler;
use convoke::sender::{Operation, Receiver, Sender};
use convoke::{Executor, Never, Outcome};

/// Creates an environment that lives as long as the process.
pub(crate) fn leaked_env(executor: impl Executor) -> &'static Env {
    Box::leak(Box::new(Env::on(ExecutorRef::new(executor))))
}

/// Storage for one operation of `schedule`, to be started repeatedly.
pub(crate) struct Reusable<X: Executor, R: Receiver<(), Never>> {
    operation: UnsafeCell<Option<<Schedule<X> as Sender>::Operation<R>>>,
}

impl<X: Executor, R: Receiver<(), Never>> Reusable<X, R> {
    pub(crate) fn new() -> Self {
        Self { operation: UnsafeCell::new(None) }
    }

    /// Connects again and starts.
    ///
    /// # Safety
    /// The storage does not move and is not freed before the receiver was completed; the operation that was
    /// started before, if any, has completed.
    #[inline]
    pub(crate) unsafe fn start(&self, executor: &X, receiver: R) {
        // SAFETY: the caller promises that no operation uses the storage, and that it stays where it is.
        unsafe {
            let operation = (*self.operation.get()).insert(executor.schedule().connect(receiver));
            Pin::new_unchecked(operation).start();
        }
    }
}

/// Runs `sender` in its own box, which frees itself at the end; then calls `done`.
pub(crate) fn spawn<S, F>(env: &'static Env, sender: S, done: F)
where
    S: Sender<Value = (), Error = Never>,
    F: FnOnce() + Send,
{
    let boxed: NonNull<Boxed<S, F>> = NonNull::from(Box::leak(Box::new(Boxed { slot: Slot::new() })));
    // SAFETY: the slot is empty, and stays in its box until its operation has completed: the receiver frees
    // it then.
    unsafe {
        Slot::run(NonNull::from(&boxed.as_ref().slot), || sender.connect(FreesBox { boxed, env, done }))
    };
}

struct Boxed<S: Sender<Value = (), Error = Never>, F: FnOnce() + Send> {
    slot: Slot<S::Operation<FreesBox<S, F>>>,
}

struct FreesBox<S: Sender<Value = (), Error = Never>, F: FnOnce() + Send> {
    boxed: NonNull<Boxed<S, F>>,
    env: &'static Env,
    done: F,
}

// SAFETY: the box holds an operation, which is `Send`; so is `done`.
unsafe impl<S: Sender<Value = (), Error = Never>, F: FnOnce() + Send> Send for FreesBox<S, F> {}

impl<S: Sender<Value = (), Error = Never>, F: FnOnce() + Send> Receiver<(), Never> for FreesBox<S, F> {
    #[inline]
    fn complete(self, _: Outcome<(), Never>) {
        // SAFETY: the box came from `Box::leak` in `spawn`, and its operation has completed, so only this
        // receiver has it.
        drop(unsafe { Box::from_raw(self.boxed.as_ptr()) });
        (self.done)();
    }

    fn env(&self) -> &Env {
        self.env
    }
}

/// Calls `f` on the executor, without waiting for it.
pub(crate) fn inside<X: Executor>(executor: &X, env: &'static Env, f: impl FnOnce() + Send) {
    spawn(env, executor.schedule(), f);
}

/// A stopwatch from a start on one thread to the last of many completions on others.
pub(crate) struct Stopwatch {
    left: AtomicU64,
    times: Mutex<(Option<Instant>, Option<Duration>)>,
    ended: Condvar,
}

impl Stopwatch {
    /// Creates a stopwatch that lives as long as the process.
    pub(crate) fn leak() -> &'static Self {
        let (left, times) = (AtomicU64::new(0), Mutex::new((None, None)));
        Box::leak(Box::new(Self { left, times, ended: Condvar::new() }))
    }

    /// Starts it, for a number of completions.
    pub(crate) fn begin(&self, completions: u64) {
        self.left.store(completions, Ordering::Release);
        *self.times.lock().expect("nobody panics with it") = (Some(Instant::now()), None);
    }

    /// Counts one completion.
    #[inline]
    pub(crate) fn one(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut times = self.times.lock().expect("nobody panics with it");
            times.1 = times.0.map(|begin| begin.elapsed());
            self.ended.notify_all();
        }
    }

    /// Waits for the last completion. Returns the time since the start.
    pub(crate) fn wait(&self) -> Duration {
        let mut times = self.times.lock().expect("nobody panics with it");
        loop {
            if let Some(time) = times.1.take() {
                return time;
            }
            times = self.ended.wait(times).expect("nobody panics with it");
        }
    }
}
