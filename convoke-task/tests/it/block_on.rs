//! `RunLoop::block_on`: a loop that runs until one future has ended.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use convoke::env::current;
use convoke::env::{Changes, Local};
use convoke::executor::{BlockOn, RunLoop, reschedule};
use convoke::prelude::*;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::task::NotSend;

static REQUEST: Local<u32> = Local::inherited("request");

#[test]
fn a_future_that_borrows_and_is_not_send_runs_on_this_thread() {
    let run_loop = RunLoop::new();
    let steps = Cell::new(0);
    let shared = Rc::new(5);
    let outcome = run_loop.block_on(async {
        for _ in 0..10 {
            steps.set(steps.get() + 1);
            checkpoint().await;
        }
        shared.clone()
    });
    assert_eq!(outcome.unwrap(), Rc::new(5));
    assert_eq!(steps.get(), 10);
}

#[test]
fn work_on_another_executor_resumes_it_on_this_thread() {
    const ROUNDS: u32 = if cfg!(miri) { 10 } else { 100 };
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    let run_loop = RunLoop::new();
    let outcome = run_loop.block_on(async {
        let here = std::thread::current().id();
        let mut sum = 0;
        for n in 0..ROUNDS {
            sum += run_on(&executor, async move { n }).await;
            assert_eq!(std::thread::current().id(), here);
        }
        sum
    });
    assert_eq!(outcome, Outcome::Value(ROUNDS * (ROUNDS - 1) / 2));
}

#[test]
fn it_may_start_local_children_but_not_move() {
    let pool = ThreadPool::new(1).unwrap();
    let run_loop = RunLoop::new();
    let outcome = run_loop.block_on(async {
        let count = Rc::new(Cell::new(0));
        let counted = count.clone();
        scope(async |s| {
            for _ in 0..3 {
                let count = counted.clone();
                s.child().local().spawn(async move {
                    checkpoint().await;
                    count.set(count.get() + 1);
                });
            }
        })
        .await;
        (count.get(), reschedule(&pool.executor()).await)
    });
    assert!(matches!(outcome.unwrap(), (3, Err(NotSend))));
}

#[test]
fn it_sees_its_environment_and_stops_when_it_is_asked_from_another_thread() {
    let run_loop = RunLoop::new();
    let source = StopSource::new();
    let changes = Changes::new().stop_token(source.token()).local(&REQUEST, 3);
    let (started, starts) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            starts.recv().unwrap();
            source.request_stop(StopReason::Shutdown);
        });
        let outcome = run_loop.block_on_with(changes, async {
            assert_eq!(current::local(&REQUEST), Some(3));
            started.send(()).unwrap();
            never::<()>().await
        });
        assert_eq!(outcome, Outcome::Stopped);
    });
}

#[test]
fn the_executor_is_the_loops_whatever_the_changes_say() {
    let pool = ThreadPool::new(1).unwrap();
    let run_loop = RunLoop::new();
    let here = std::thread::current().id();
    let changes = Changes::new().executor(pool.executor());
    let outcome = run_loop.block_on_with(changes, async {
        checkpoint().await;
        std::thread::current().id()
    });
    assert_eq!(outcome, Outcome::Value(here));
}

#[test]
fn its_panic_is_resumed_here_and_the_loop_stays_usable() {
    let run_loop = RunLoop::new();
    let run = || run_loop.block_on(async { panic!("boom") });
    let panic = catch_unwind(AssertUnwindSafe(run)).map(drop).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"boom"));
    assert_eq!(run_loop.block_on(async { 1 }), Outcome::Value(1));
}

#[test]
fn it_may_be_called_by_work_of_the_same_loop() {
    let run_loop = RunLoop::new();
    let outcome = run_loop.block_on(async {
        checkpoint().await;
        let inner = run_loop.block_on(async {
            checkpoint().await;
            1
        });
        checkpoint().await;
        inner.unwrap() + 1
    });
    assert_eq!(outcome, Outcome::Value(2));
}

#[test]
fn a_task_that_was_launched_on_the_loop_runs_meanwhile() {
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).start(async { 4 });
    assert_eq!(run_loop.block_on(launched.into_awaited()), Outcome::Value(4));
}
