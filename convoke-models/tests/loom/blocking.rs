//! Blocking work and the task that waits for it, in all interleavings: the work ends while the task is
//! requested to stop, while its grace period ends, while it is dropped. Nothing is lost or leaked, and only
//! work that still runs is reported.
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::model::{Count, Reached, explore, explore_long};
use convoke_core::env::Changes;
use convoke_core::raw::sync::thread;
use convoke_sender::prelude::*;
use convoke_sender::{sync_wait, sync_wait_with};
use convoke_task::blocking::{BlockingPool, set_overdue_hook};
use convoke_task::task;

/// The number of reports of blocking work, by the hook of the process. Each test is a process of its own.
static NAMED: AtomicUsize = AtomicUsize::new(0);

fn count_named() {
    set_overdue_hook(|_| {
        NAMED.fetch_add(1, Ordering::Relaxed);
    });
}

/// The result of blocking work, which counts its drops.
struct Made(Count);

impl Made {
    fn new(made: &Count) -> Self {
        made.add();
        Self(Count::default())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        assert_eq!(self.0.add(), 0, "dropped twice");
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// Returns how often the work has returned and how often it was reported, and checks that all its results
/// were dropped.
fn counts(made: &Count) -> (usize, usize) {
    assert_eq!(DROPPED.swap(0, Ordering::Relaxed), made.get(), "what was returned is kept, or was lost");
    (made.get(), NAMED.swap(0, Ordering::Relaxed))
}

/// Runs work with this grace period in a task that is requested to stop meanwhile. Returns whether it had a
/// value, whether the work has returned, and whether it was reported.
fn stopped_meanwhile(grace: Duration) -> (bool, bool, bool) {
    let (made, source) = (Count::default(), StopSource::new());
    let pool = BlockingPool::new(1);
    let asks = {
        let source = source.clone();
        thread::spawn(move || {
            source.request_stop(StopReason::Requested);
        })
    };
    let (there, making) = (pool.clone(), made.clone());
    let work = async move { there.run(move |_| Made::new(&making)).grace(grace).await };
    let outcome = sync_wait_with(Changes::new().stop_token(source.token()), task(work));
    let value = outcome.is_value();
    drop(outcome);
    asks.join().unwrap();
    drop(pool);
    let (returned, named) = counts(&made);
    assert!(returned <= 1 && named <= 1);
    (value, returned == 1, named == 1)
}

#[test]
fn without_patience_the_result_comes_or_the_work_is_named_never_both() {
    static VALUE: Reached = Reached::new();
    static NAMED: Reached = Reached::new();
    static NEVER_BEGAN: Reached = Reached::new();
    count_named();
    explore_long(2, || match stopped_meanwhile(Duration::ZERO) {
        (true, true, false) => VALUE.here(),
        (false, true, true) => NAMED.here(),
        (false, false, false) => NEVER_BEGAN.here(),
        (value, returned, named) => panic!("value {value}, returned {returned}, named {named}"),
    });
    VALUE.assert("it ended before the task was asked, or before the task looked");
    NAMED.assert("it was left to its thread");
    NEVER_BEGAN.assert("the task was asked before there was a thread");
}

#[test]
fn with_all_patience_work_that_began_is_always_waited_for() {
    static VALUE: Reached = Reached::new();
    static NEVER_BEGAN: Reached = Reached::new();
    count_named();
    explore(2, || match stopped_meanwhile(Duration::MAX) {
        (true, true, false) => VALUE.here(),
        (false, false, false) => NEVER_BEGAN.here(),
        (value, returned, named) => panic!("value {value}, returned {returned}, named {named}"),
    });
    VALUE.assert("it completed with a value");
    NEVER_BEGAN.assert("the task was asked before there was a thread");
}

#[test]
fn work_whose_future_is_dropped_is_named_if_it_still_runs() {
    static ENDED: Reached = Reached::new();
    static RUNS: Reached = Reached::new();
    count_named();
    explore(3, || {
        let made = Count::default();
        let pool = BlockingPool::new(1);
        let (there, making) = (pool.clone(), made.clone());
        let ready = sync_wait(task(async move {
            let mut work = Box::pin(there.run(move |_| Made::new(&making)));
            poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await
        }));
        drop(pool);
        let (returned, named) = counts(&made);
        assert_eq!(returned, 1, "what began is run");
        assert!(ready == Outcome::Value(false) || named == 0);
        RUNS.here_if(named == 1);
        ENDED.here_if(named == 0);
    });
    ENDED.assert("it had ended");
    RUNS.assert("it still ran");
}

#[test]
fn the_thread_of_the_first_is_free_when_the_second_comes() {
    static DONE: Reached = Reached::new();
    explore(1, || {
        let pool = BlockingPool::new(1);
        let there = pool.clone();
        let outcome = sync_wait(task(async move { there.run(|_| 1).await + there.run(|_| 2).await }));
        assert_eq!(outcome, Outcome::Value(3));
        DONE.here();
        drop(pool);
    });
    DONE.assert("the permit came back");
}
