//! P4003R1 §4: an executor of one's own, made by wrapping another: it counts what
//! is posted and what is dispatched.
//!
//! A `Runnable` is the paper's `continuation`: one pointer, and queuing it
//! allocates nothing. The trait is safe to implement; work that an executor drops
//! ends as stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::Executor;
use convoke::executor::PoolExecutor;
use convoke::prelude::*;
use convoke::raw::{AnyExecutor, Runnable};

#[derive(Clone)]
struct Instrumented {
    inner: PoolExecutor,
    posted: Arc<AtomicU32>,
}

impl PartialEq for Instrumented {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.posted, &other.posted)
    }
}

impl Executor for Instrumented {
    fn post(&self, runnable: Runnable) {
        self.posted.fetch_add(1, Ordering::Relaxed);
        self.inner.post(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.inner.dispatch(runnable)
    }

    // Its context, its timers and its allocator are those of the pool.
    fn wraps(&self) -> Option<&dyn AnyExecutor> {
        Some(&self.inner)
    }
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(1).unwrap();
    let posted = Arc::new(AtomicU32::new(0));
    let executor = Instrumented { inner: pool.executor(), posted: posted.clone() };
    let launched = launch(&executor).start(async {
        for _ in 0..3 {
            checkpoint().await; // Posts the task again, behind the others.
        }
    });
    launched.wait().unwrap();
    format!("posted {} times", posted.load(Ordering::Relaxed))
}
