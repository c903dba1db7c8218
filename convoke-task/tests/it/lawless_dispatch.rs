//! Executors that hand back other work from `dispatch` than they were given.
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use convoke::env::{Changes, Env};
use convoke::launch;
use convoke::prelude::*;
use convoke::raw::Runnable;
use convoke::sender::CountingScope;
use convoke::sender::prelude::*;

/// Stores the work that is dispatched, and hands back the work that was dispatched before.
#[derive(Clone, Default)]
struct Swaps(Arc<Mutex<Option<Runnable>>>);

impl PartialEq for Swaps {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for Swaps {
    fn post(&self, runnable: Runnable) {
        runnable.run();
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.0.lock().unwrap().replace(runnable)
    }
}

#[test]
fn an_executor_that_hands_back_other_work_than_it_was_given_has_that_run() {
    let (x, ran) = (Swaps::default(), Arc::new(AtomicUsize::new(0)));
    let env = Env::new().with(Changes::new().executor(x.clone()));
    let scope = CountingScope::new();
    for _ in 0..3 {
        let count = ran.clone();
        let work = async move {
            checkpoint().await;
            count.fetch_add(1, Ordering::Relaxed);
        };
        assert!(scope.spawn(task(work), &env).is_ok());
    }
    assert_eq!(ran.load(Ordering::Relaxed), 2, "the third is there instead of the second");
    let last = x.0.lock().unwrap().take();
    drop(last);
    assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
}

/// Runs the work that it is given on another thread, to its end, and hands back work that it has stored.
#[derive(Clone, Default)]
struct Exchanges(Arc<Mutex<Vec<Runnable>>>);

impl PartialEq for Exchanges {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for Exchanges {
    fn post(&self, runnable: Runnable) {
        self.0.lock().unwrap().push(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        thread::spawn(move || runnable.run()).join().unwrap();
        self.0.lock().unwrap().pop()
    }
}

/// Calls `each` in tasks that await each other.
fn nested(depth: usize, each: Arc<dyn Fn() + Send + Sync>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        each();
        if depth > 0 {
            task(nested(depth - 1, each)).await;
        }
    })
}

/// The environment of the work that the executor was given is gone when other work comes back: at any depth.
#[test]
fn an_executor_that_hands_back_other_work_may_have_freed_the_environment() {
    const DEPTH: usize = 34;
    let x = Exchanges::default();
    let stored: Vec<_> = (0..DEPTH).map(|_| launch(&x).start(async {})).collect();
    let (scope, executor) = (Arc::new(CountingScope::new()), x.clone());
    let spawns = scope.clone();
    let each = move || {
        let env = Env::new().with(Changes::new().executor(executor.clone()));
        assert!(spawns.spawn(task(async {}), &env).is_ok());
    };
    assert_eq!(block_on(nested(DEPTH, Arc::new(each))), Outcome::Value(()));
    // The rest is stopped.
    let rest = core::mem::take(&mut *x.0.lock().unwrap());
    drop(rest);
    assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    drop(stored);
}
