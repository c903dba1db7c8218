//! Depth: tasks that await tasks, scopes in scopes, and waiters in line cost heap, and not stack.
use std::pin::Pin;
use std::sync::Arc;

use convoke::executor::{InlineExecutor, RunLoop};
use convoke::prelude::*;
use convoke::sync::Mutex;
use convoke::task::task;

/// A depth that overflows the stack of a test's thread if each level uses a part of it.
const DEEP: usize = if cfg!(miri) { 50 } else { 30_000 };

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Awaits a task that awaits a task, and so on.
fn nested(levels: usize) -> Boxed<usize> {
    Box::pin(async move { if levels == 0 { 0 } else { task(nested(levels - 1)).await + 1 } })
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth() {
    assert_eq!(block_on(nested(DEEP)), Outcome::Value(DEEP));
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth_on_a_pool() {
    let pool = ThreadPool::new(2).unwrap();
    assert_eq!(launch(&pool.executor()).start(nested(DEEP / 10)).wait(), Outcome::Value(DEEP / 10));
}

#[test]
fn tasks_that_await_tasks_end_at_any_depth_inline() {
    assert_eq!(launch(&InlineExecutor).start(nested(DEEP)).wait(), Outcome::Value(DEEP));
}

#[test]
fn a_stop_reaches_the_deepest_of_nested_tasks() {
    fn waits(levels: usize) -> Boxed<()> {
        Box::pin(async move {
            if levels == 0 {
                convoke::task::forever().await
            }
            task(waits(levels - 1)).await;
        })
    }
    let outcome = block_on(async {
        race((waits(DEEP / 10), async {
            for _ in 0..DEEP / 10 {
                checkpoint().await;
            }
        }))
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_loop_that_is_dropped_under_waiters_in_line_stops_them_all() {
    let run_loop = RunLoop::new();
    let lock = Arc::new(Mutex::new(0));
    let held = lock.try_lock().unwrap();
    let launched: Vec<_> = (0..DEEP / 10)
        .map(|_| {
            let lock = lock.clone();
            launch(&run_loop.executor()).start(async move { *lock.lock().await += 1 })
        })
        .collect();
    run_loop.run_ready();
    drop(run_loop);
    drop(held);
    assert!(launched.into_iter().all(|launched| launched.wait() == Outcome::Stopped));
}
