//! Operations that repeatedly go through an executor's queue.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::time::Duration;

use convoke::env::Env;
use convoke::sender::Receiver;
use convoke::{Executor, Never, Outcome};

use super::{Reusable, Stopwatch, inside, leaked_env};

/// Returns a contestant with `in_flight` operations, each of which is posted `ops / in_flight` times. `run`
/// is called once they have started: it runs the executor, if that has no threads, and keeps its context
/// alive.
pub(crate) fn keep_posting<X: Executor>(
    executor: X,
    in_flight: u64,
    run: impl Fn(),
) -> impl FnMut(u64) -> Duration {
    let env = leaked_env(executor.clone());
    let watch = Stopwatch::leak();
    let rounds: Vec<_> = (0..in_flight).map(|_| Box::new(Round::new(executor.clone(), env, watch))).collect();
    let rounds: &'static [Box<Round<X>>] = rounds.leak();
    move |ops| {
        inside(&executor, env, move || {
            watch.begin(in_flight);
            for round in rounds {
                round.left.set(ops / in_flight);
                // SAFETY: the previous run of this round has ended, because `wait` below returned, and rounds
                // are never freed.
                unsafe { Round::go(NonNull::from(&**round)) };
            }
        });
        run();
        watch.wait()
    }
}

struct Round<X: Executor> {
    operation: Reusable<X, Again<X>>,
    left: Cell<u64>,
    executor: X,
    env: &'static Env,
    watch: &'static Stopwatch,
}

// SAFETY: a round is used by one thread at a time: the one that starts it, then the one that runs its
// operation.
unsafe impl<X: Executor> Sync for Round<X> {}

impl<X: Executor> Round<X> {
    fn new(executor: X, env: &'static Env, watch: &'static Stopwatch) -> Self {
        Self { operation: Reusable::new(), left: Cell::new(0), executor, env, watch }
    }

    /// # Safety
    /// `this` is never freed, and its operation does not run.
    #[inline]
    unsafe fn go(this: NonNull<Self>) {
        // SAFETY: the caller promises that `this` is never freed and its operation does not run.
        let round = unsafe { this.as_ref() };
        match round.left.get() {
            0 => round.watch.one(),
            left => {
                round.left.set(left - 1);
                // SAFETY: the storage is never freed, and the previous operation has completed.
                unsafe { round.operation.start(&round.executor, Again(this)) };
            }
        }
    }
}

struct Again<X: Executor>(NonNull<Round<X>>);

// SAFETY: it points to a round, which may be used by one thread after the other.
unsafe impl<X: Executor> Send for Again<X> {}

impl<X: Executor> Receiver<(), Never> for Again<X> {
    #[inline]
    fn complete(self, _: Outcome<(), Never>) {
        // SAFETY: rounds are never freed, and the operation has just completed.
        unsafe { Round::go(self.0) }
    }

    fn env(&self) -> &Env {
        // SAFETY: rounds are never freed.
        unsafe { self.0.as_ref() }.env
    }
}
