//! Many operations in boxes, started from inside an executor and kept until the last of them is home.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use convoke::env::Env;
use convoke::raw::Slot;
use convoke::sender::algorithm::schedule::Schedule;
use convoke::sender::algorithm::schedule::Scheduler;
use convoke::sender::{Receiver, Sender};
use convoke::{Executor, Never, Outcome};

use super::{Stopwatch, inside, leaked_env};

/// The boxes, and how many of their operations are not home.
pub(crate) struct Brood<X: Executor> {
    executor: X,
    env: &'static Env,
    boxes: UnsafeCell<Vec<Box<Slot<OperationOf<X>>>>>,
    not_home: AtomicU64,
    watch: &'static Stopwatch,
}

type OperationOf<X> = <Schedule<X> as Sender>::Operation<CountOne<X>>;

// SAFETY: the boxes are touched by the one who hatches, who holds a count, and then by the last one home.
unsafe impl<X: Executor> Sync for Brood<X> {}

impl<X: Executor> Brood<X> {
    /// For as long as the process lasts.
    pub(crate) fn leak(executor: X) -> &'static Self {
        let (env, watch) = (leaked_env(executor.clone()), Stopwatch::leak());
        let boxes = UnsafeCell::new(Vec::new());
        Box::leak(Box::new(Self { executor, env, boxes, not_home: AtomicU64::new(0), watch }))
    }

    /// Starts so many from inside the executor, and waits for them. Says how long it took, with freeing them.
    pub(crate) fn hatch(&'static self, count: u64) -> Duration {
        inside(&self.executor, self.env, move || {
            self.watch.begin(1);
            self.not_home.store(count + 1, Ordering::Release);
            // SAFETY: we hold a count until the end of this, so nobody else is at the boxes.
            let boxes = unsafe { &mut *self.boxes.get() };
            for _ in 0..count {
                let slot = Box::new(Slot::new());
                // SAFETY: the slot is empty and stays in its box until the last one is home.
                unsafe {
                    Slot::run(NonNull::from(&*slot), || self.executor.schedule().connect(CountOne(self)))
                };
                boxes.push(slot);
            }
            self.one_home();
        });
        self.watch.wait()
    }

    #[inline]
    fn one_home(&self) {
        if self.not_home.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: we are the last one home.
            unsafe { (*self.boxes.get()).clear() };
            self.watch.one();
        }
    }
}

/// The receiver of one of them.
struct CountOne<X: Executor>(&'static Brood<X>);

impl<X: Executor> Receiver<(), Never> for CountOne<X> {
    #[inline]
    fn complete(self, outcome: Outcome<(), Never>) {
        // An executor that has ended stops all it is given, and is very fast.
        assert!(outcome.is_value(), "the executor has ended");
        self.0.one_home();
    }

    fn env(&self) -> &Env {
        self.0.env
    }
}
