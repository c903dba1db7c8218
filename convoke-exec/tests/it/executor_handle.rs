//! The executor on which `post` or `dispatch` is called outlives the call, whatever the work does meanwhile:
//! the work may run to its end on another thread and free the environment that the executor came from.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::thread;

use convoke::Executor;
use convoke::executor::reschedule;
use convoke::prelude::*;
use convoke::raw::Runnable;
use convoke::scope::scope_on;
use convoke::sender::prelude::*;

/// Runs each piece of work to its end on another thread, inside `post`, and then checks that its own handle
/// still exists. Each handle has a number, and a dropped handle records its number, so that the check does
/// not read freed memory.
struct Probe {
    number: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    dropped: Mutex<HashSet<u64>>,
    posts: AtomicUsize,
    dropped_inside: AtomicUsize,
    /// True if the second post also waits for the end of the test, on another thread than the test's; the
    /// first one then returns before its work has run.
    second_awaits_end: bool,
    ended: (Mutex<bool>, Condvar),
    still_running: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Probe {
    fn new() -> Self {
        Self::of(&Arc::default())
    }

    fn whose_second_post_awaits_the_end() -> Self {
        Self::of(&Arc::new(Shared { second_awaits_end: true, ..Shared::default() }))
    }

    fn of(shared: &Arc<Shared>) -> Self {
        Self { number: shared.next.fetch_add(1, Ordering::Relaxed), shared: shared.clone() }
    }

    /// Copies what it needs of the handle, which may be dropped before this returns.
    fn call(number: u64, shared: Arc<Shared>, runnable: Runnable) {
        let post = shared.posts.fetch_add(1, Ordering::Relaxed);
        let runs = thread::spawn(move || runnable.run());
        if shared.second_awaits_end && post == 0 {
            return shared.still_running.lock().unwrap().push(runs);
        }
        runs.join().unwrap();
        if shared.second_awaits_end {
            let (ended, changed) = &shared.ended;
            drop(changed.wait_while(ended.lock().unwrap(), |ended| !*ended).unwrap());
        }
        if shared.dropped.lock().unwrap().contains(&number) {
            shared.dropped_inside.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn assert_outlived(&self, posts: usize) {
        *self.shared.ended.0.lock().unwrap() = true;
        self.shared.ended.1.notify_all();
        for runs in self.shared.still_running.lock().unwrap().drain(..) {
            runs.join().unwrap();
        }
        assert_eq!(self.shared.posts.load(Ordering::Relaxed), posts);
        let dropped_inside = self.shared.dropped_inside.load(Ordering::Relaxed);
        assert_eq!(dropped_inside, 0, "a handle was dropped inside a call on it");
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self::of(&self.shared)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.shared.dropped.lock().unwrap().insert(self.number);
    }
}

impl PartialEq for Probe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Executor for Probe {
    fn post(&self, runnable: Runnable) {
        Self::call(self.number, self.shared.clone(), runnable);
    }
}

#[test]
fn a_handle_outlives_the_first_post_of_a_spawned_child() {
    let probe = Probe::new();
    let outcome = sync_wait(task({
        let probe = probe.clone();
        async move {
            scope(async move |s| {
                s.child().on(&probe).spawn(async {});
            })
            .await
        }
    }));
    assert_eq!(outcome, Outcome::Value(()));
    probe.assert_outlived(1);
}

#[test]
fn a_handle_outlives_the_post_of_a_woken_child() {
    let probe = Probe::whose_second_post_awaits_the_end();
    let waking = Arc::new(Mutex::new(None));
    let outcome = sync_wait(task({
        let (probe, waking) = (probe.clone(), waking.clone());
        async move {
            scope_on(&probe, async move |s| {
                let mut polled = false;
                s.spawn(poll_fn(move |cx| {
                    if std::mem::replace(&mut polled, true) {
                        return Poll::Ready(());
                    }
                    let waker = cx.waker().clone();
                    *waking.lock().unwrap() = Some(thread::spawn(move || waker.wake()));
                    Poll::Pending
                }));
            })
            .await
        }
    }));
    assert_eq!(outcome, Outcome::Value(()));
    probe.assert_outlived(2);
    waking.lock().unwrap().take().expect("the child was polled").join().unwrap();
}

#[test]
fn a_handle_outlives_the_dispatch_of_a_task_that_is_waited_for() {
    // The task is started on a second thread and runs on a third, which ends the wait of the first.
    let probe = Probe::whose_second_post_awaits_the_end();
    assert_eq!(sync_wait(task(async { 7 }).starts_on(&probe)), Outcome::Value(7));
    probe.assert_outlived(2);
}

#[test]
fn a_handle_outlives_the_post_of_a_task_that_moves() {
    let probe = Probe::new();
    let outcome = sync_wait(task({
        let probe = probe.clone();
        async move { reschedule(&probe).await.is_ok() }
    }));
    assert_eq!(outcome, Outcome::Value(true));
    probe.assert_outlived(1);
}

/// Panics in `post`, before or after it has queued the work.
#[derive(Clone)]
struct Panics {
    inner: convoke::executor::ExecutorRef,
    queues: bool,
}

impl PartialEq for Panics {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner && self.queues == other.queues
    }
}

impl Executor for Panics {
    fn post(&self, runnable: Runnable) {
        if self.queues {
            self.inner.post(runnable);
        }
        panic!("on purpose: the executor cannot post");
    }
}

#[test]
fn a_child_whose_executor_panics_before_queueing_ends_stopped_and_its_scope_ends() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = Panics { inner: convoke::executor::ExecutorRef::new(pool.executor()), queues: false };
    let outcome = sync_wait(task(async move {
        scope(async move |s| {
            let child = s.child().on(&executor).spawn_future(async { 1 });
            catch_stopped(child).await.is_err()
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn a_child_whose_executor_panics_after_queueing_runs() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = Panics { inner: convoke::executor::ExecutorRef::new(pool.executor()), queues: true };
    let outcome = sync_wait(task(async move {
        scope(async move |s| s.child().on(&executor).spawn_future(async { 1 }).await).await
    }));
    assert_eq!(outcome, Outcome::Value(1));
}

#[test]
fn a_task_whose_executor_panics_completes_stopped() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = Panics { inner: convoke::executor::ExecutorRef::new(pool.executor()), queues: false };
    assert_eq!(sync_wait(task(async { 1 }).starts_on(&executor)), Outcome::Stopped);
}
