//! Many boxed operations, started from inside an executor and freed when the last one has completed.

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

/// The boxes, and the number of their operations that have not completed.
pub(crate) struct BoxedBatch<X: Executor> {
    executor: X,
    env: &'static Env,
    boxes: UnsafeCell<Vec<Box<Slot<OperationOf<X>>>>>,
    pending: AtomicU64,
    watch: &'static Stopwatch,
}

type OperationOf<X> = <Schedule<X> as Sender>::Operation<CountOne<X>>;

// SAFETY: only two access the boxes: first the starter, which owns a count, and then the last operation to
// complete.
unsafe impl<X: Executor> Sync for BoxedBatch<X> {}

impl<X: Executor> BoxedBatch<X> {
    /// Creates a batch that lives as long as the process.
    pub(crate) fn leak(executor: X) -> &'static Self {
        let (env, watch) = (leaked_env(executor.clone()), Stopwatch::leak());
        let boxes = UnsafeCell::new(Vec::new());
        Box::leak(Box::new(Self { executor, env, boxes, pending: AtomicU64::new(0), watch }))
    }

    /// Starts `count` operations from inside the executor, and waits for them. Returns the time, including
    /// freeing them.
    pub(crate) fn run(&'static self, count: u64) -> Duration {
        inside(&self.executor, self.env, move || {
            self.watch.begin(1);
            self.pending.store(count + 1, Ordering::Release);
            // SAFETY: this closure owns a count until its end, so no operation is the last one yet and
            // accesses the boxes.
            let boxes = unsafe { &mut *self.boxes.get() };
            for _ in 0..count {
                let slot = Box::new(Slot::new());
                // SAFETY: the slot is empty, and stays in its box until the last operation has completed.
                unsafe {
                    Slot::run(NonNull::from(&*slot), || self.executor.schedule().connect(CountOne(self)))
                };
                boxes.push(slot);
            }
            self.count_down();
        });
        self.watch.wait()
    }

    #[inline]
    fn count_down(&self) {
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the count was 1 above, so this is the last one, and the starter has given up its count.
            unsafe { (*self.boxes.get()).clear() };
            self.watch.one();
        }
    }
}

/// The receiver of one operation.
struct CountOne<X: Executor>(&'static BoxedBatch<X>);

impl<X: Executor> Receiver<(), Never> for CountOne<X> {
    #[inline]
    fn complete(self, outcome: Outcome<(), Never>) {
        // An executor that has ended stops all work at once, which would look very fast.
        assert!(outcome.is_value(), "the executor has ended");
        self.0.count_down();
    }

    fn env(&self) -> &Env {
        self.0.env
    }
}
