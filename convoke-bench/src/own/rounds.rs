//! Operations that go through an executor's queue again and again.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::time::Duration;

use convoke::env::Env;
use convoke::sender::Receiver;
use convoke::{Executor, Never, Outcome};

use super::{Reusable, Stopwatch, inside, leaked_env};

/// `in_flight` operations, each going round `ops / in_flight` times. `run` is called once they are on their way: it
/// runs the executor, if that has no threads of its own, and keeps its context alive.
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
                // SAFETY: the last time round has ended, as `wait` below returned; the round is never freed.
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

// SAFETY: a round is used by one thread at a time: whoever starts it, then whoever runs its operation.
unsafe impl<X: Executor> Sync for Round<X> {}

impl<X: Executor> Round<X> {
    fn new(executor: X, env: &'static Env, watch: &'static Stopwatch) -> Self {
        Self { operation: Reusable::new(), left: Cell::new(0), executor, env, watch }
    }

    /// # Safety
    /// `this` is never freed, and its operation does not run.
    #[inline]
    unsafe fn go(this: NonNull<Self>) {
        // SAFETY: the caller's.
        let round = unsafe { this.as_ref() };
        match round.left.get() {
            0 => round.watch.one(),
            left => {
                round.left.set(left - 1);
                // SAFETY: the storage is never freed; the operation before has completed.
                unsafe { round.operation.start(&round.executor, Again(this)) };
            }
        }
    }
}

struct Again<X: Executor>(NonNull<Round<X>>);

// SAFETY: it leads to a round, which may be used by one thread after the other.
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
