//! P3149R1 §2.1: an executor and a scope in one object, on the way to structure: a
//! class that gave functions to an executor can now wait for them.
//!
//! Forgetting `clean_up` is not a crash later: dropping a scope that was not joined
//! panics, and names the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke::executor::PoolExecutor;
use convoke::prelude::*;
use convoke::sender::prelude::*;

struct ExecutorScopePair {
    executor: PoolExecutor,
    scope: CountingScope,
}

impl ExecutorScopePair {
    fn add(&self, function: impl FnOnce() + Send + 'static) {
        let work = just_from(function).starts_on(&self.executor);
        self.scope.spawn(work, &Env::from(self.executor)).unwrap();
    }

    fn clean_up(&self) {
        sync_wait(self.scope.join()).unwrap();
    }
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(2).unwrap();
    let (executor, scope) = (pool.executor(), CountingScope::new());
    let pair = ExecutorScopePair { executor, scope };
    let done = Arc::new(AtomicU32::new(0));
    for _ in 0..10 {
        let done = done.clone();
        pair.add(move || _ = done.fetch_add(1, Ordering::Relaxed));
    }
    pair.clean_up();
    format!("{} functions were called", done.load(Ordering::Relaxed))
}
