//! Chains of tasks that are longer than the stack is deep, whose executor has ended before them: each task that is
//! stopped wakes the next, which is refused.
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use convoke::executor::{Limited, RunLoop, Strand};
use convoke::prelude::*;
use convoke::raw::{Call, Runnable};
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::testing::runnable;

/// A length at which a chain overflows the stack of a test's thread if each task uses a part of it.
const LONG: usize = if cfg!(miri) { 90 } else { 30_000 };

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns `levels` tasks, each in a scope of the one before. The last one waits for ever.
fn nested(levels: usize, waiting: Arc<AtomicUsize>) -> Boxed {
    Box::pin(async move {
        if levels == 0 {
            waiting.fetch_add(1, Ordering::Relaxed);
            forever().await
        }
        scope(async |s| s.spawn(nested(levels - 1, waiting))).await;
    })
}

/// Wakes a task when it is dropped.
struct Wakes(Arc<Mutex<Option<Waker>>>);

impl Drop for Wakes {
    fn drop(&mut self) {
        let waker = self.0.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Launches many tasks that wait, each of which wakes the next one when it is dropped. Returns a value that
/// wakes the first.
fn in_a_row<X: Executor>(
    executor: &X,
    waiting: &Arc<AtomicUsize>,
) -> (Wakes, Vec<convoke::task::Launched<()>>) {
    let mut next = Wakes(Arc::default());
    let mut launched = Vec::new();
    for _ in 0..LONG {
        let waker = Arc::new(Mutex::new(None));
        let (own, wakes, waiting) = (waker.clone(), next, waiting.clone());
        launched.push(launch(executor).start(async move {
            let _wakes = wakes;
            poll_fn(|cx| {
                *own.lock().unwrap() = Some(cx.waker().clone());
                waiting.fetch_add(1, Ordering::Relaxed);
                Poll::<()>::Pending
            })
            .await;
        }));
        next = Wakes(waker);
    }
    (next, launched)
}

fn all_stopped(launched: Vec<convoke::task::Launched<()>>) {
    assert!(launched.into_iter().all(|launched| launched.wait() == Outcome::Stopped));
}

#[test]
fn tasks_that_wake_each_other_end_after_their_loop() {
    let run_loop = RunLoop::new();
    let (first, launched) = in_a_row(&run_loop.executor(), &Arc::default());
    run_loop.run_ready();
    drop(run_loop);
    drop(first);
    all_stopped(launched);
}

#[test]
fn tasks_that_wake_each_other_end_with_their_loop() {
    let run_loop = RunLoop::new();
    let (first, launched) = in_a_row(&run_loop.executor(), &Arc::default());
    run_loop.run_ready();
    run_loop.executor().post(runnable(move |_| {
        let _owned = &first;
    }));
    drop(run_loop);
    all_stopped(launched);
}

#[test]
fn tasks_that_wake_each_other_end_after_their_pool() {
    let pool = ThreadPool::new(2).unwrap();
    let waiting = Arc::new(AtomicUsize::new(0));
    let (first, launched) = in_a_row(&pool.executor(), &waiting);
    while waiting.load(Ordering::Relaxed) < LONG {
        std::thread::yield_now();
    }
    drop(pool);
    drop(first);
    all_stopped(launched);
}

#[test]
fn tasks_that_wake_each_other_end_after_the_loop_of_their_strand_or_view() {
    let run_loop = RunLoop::new();
    let (strand, view) = (Strand::new(run_loop.executor()), Limited::new(&run_loop.executor(), 1000));
    let (in_strand, mut launched) = in_a_row(&strand, &Arc::default());
    let (in_view, others) = in_a_row(&view, &Arc::default());
    launched.extend(others);
    run_loop.run_ready();
    drop(run_loop);
    drop((in_strand, in_view));
    all_stopped(launched);
}

#[test]
fn nested_scopes_end_after_their_loop() {
    let (run_loop, waiting) = (RunLoop::new(), Arc::new(AtomicUsize::new(0)));
    let launched = launch(&run_loop.executor()).start(nested(LONG / 3, waiting.clone()));
    run_loop.run_ready();
    assert_eq!(waiting.load(Ordering::Relaxed), 1);
    drop(run_loop);
    drop(launched);
}

#[test]
fn a_destructor_deep_inside_a_chain_may_wait_for_work_that_is_refused() {
    /// Waits for work on an executor that has ended.
    struct Waits<X: Executor>(X);

    impl<X: Executor> Drop for Waits<X> {
        fn drop(&mut self) {
            assert_eq!(sync_wait(schedule(&self.0)), Outcome::Stopped);
            assert_eq!(launch(&self.0).start(async {}).wait(), Outcome::Stopped);
        }
    }

    /// Posts the next one when it is stopped, `left` times.
    fn chain(executor: convoke::executor::PoolExecutor, left: usize, ended: Arc<AtomicUsize>) -> Runnable {
        runnable(move |call| {
            assert_eq!(call, Call::Stop);
            ended.fetch_add(1, Ordering::Relaxed);
            if left > 0 {
                executor.post(chain(executor, left - 1, ended.clone()));
            }
            drop(Waits(executor));
        })
    }

    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    drop(pool);
    let ended = Arc::new(AtomicUsize::new(0));
    executor.post(chain(executor, 200, ended.clone()));
    assert_eq!(ended.load(Ordering::Relaxed), 201, "all have ended when the first post returns");
}
