//! Blocking work: its results, its stop, its grace period, and its way back into async code.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use convoke::env::current;
use convoke::env::{Changes, Local};
use convoke::executor::{BlockingPool, set_overdue_hook};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{for_each_concurrent, forever};

#[test]
fn a_result_is_returned_and_a_panic_is_resumed() {
    let there = sync_wait(task(async { blocking(|_| std::thread::current().id()).await })).unwrap();
    assert_ne!(there, std::thread::current().id());
    let program = async { blocking(|_| -> () { panic!("off the rails") }).await };
    let panic = catch_unwind(AssertUnwindSafe(|| sync_wait(task(program)))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"off the rails"));
}

#[test]
fn no_more_functions_run_at_a_time_than_the_pool_has_threads() {
    let pool = BlockingPool::new(2);
    let most = sync_wait(task(async move {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for_each_concurrent(0..20, 20, async |_| {
            let (running, most) = (running.clone(), most.clone());
            pool.run(move |_| {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
            })
            .await;
        })
        .await;
        most.load(Ordering::SeqCst)
    }));
    assert!((1..=2).contains(&most.unwrap()));
}

#[test]
fn work_that_sees_the_stop_is_waited_for_and_its_result_is_not_lost() {
    let source = StopSource::new();
    let asks = source.clone();
    let seen = Arc::new(Mutex::new(None));
    let told = seen.clone();
    let outcome = sync_wait_with(
        Changes::new().stop_token(source.token()),
        task(async move {
            let reason = blocking(move |inside| {
                asks.request_stop(StopReason::Shutdown);
                while !inside.stop_requested() {
                    std::thread::yield_now();
                }
                inside.stop_reason()
            })
            .await;
            *told.lock().unwrap() = reason;
            checkpoint().await;
        }),
    );
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(*seen.lock().unwrap(), Some(StopReason::Shutdown));
}

#[test]
fn work_that_ignores_the_stop_is_reported_when_its_grace_period_is_over() {
    let named = Arc::new(Mutex::new(Vec::new()));
    let told = named.clone();
    set_overdue_hook(move |overdue| told.lock().unwrap().push(overdue.to_string()));
    let source = StopSource::new();
    let asks = source.clone();
    let (let_go, waits) = mpsc::channel::<()>();
    let outcome = sync_wait_with(
        Changes::new().stop_token(source.token()),
        task(async move {
            blocking(move |_| {
                asks.request_stop(StopReason::Shutdown);
                let _ = waits.recv();
            })
            .named("deaf")
            .grace(Duration::from_millis(1))
            .await;
        }),
    );
    assert_eq!(outcome, Outcome::Stopped);
    let named = named.lock().unwrap();
    assert!(named.iter().any(|line| line.contains("`deaf`") && line.contains("blocking.rs")), "{named:?}");
    drop(let_go);
}

#[test]
fn a_task_that_waits_for_a_thread_can_be_stopped() {
    let pool = BlockingPool::new(1);
    let (let_go, waits) = mpsc::channel::<()>();
    let outcome = sync_wait(task(async move {
        let first = pool.run(move |_| waits.recv().is_err());
        let second = async {
            let waited = timeout(Duration::from_millis(1), pool.run(|_| ())).await;
            drop(let_go);
            waited.is_err()
        };
        join((first, second)).await.1
    }));
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn async_code_called_from_inside_runs_on_the_tasks_executor_and_stops_with_the_work() {
    let outcome = sync_wait(task(async {
        let caller = std::thread::current().id();
        blocking(move |inside| {
            let there = inside.block_on(async {
                checkpoint().await;
                std::thread::current().id()
            });
            there == Outcome::Value(caller)
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(true));

    let outcome = sync_wait(task(async {
        let waits = blocking(|inside| inside.block_on(async { forever().await }) == Outcome::<()>::Stopped);
        timeout(Duration::from_millis(1), waits).await
    }));
    assert_eq!(outcome, Outcome::Value(Ok(true)));
}

#[test]
fn inherited_locals_are_seen_by_the_function_and_by_async_code_it_calls() {
    static FOLLOWS: Local<u32> = Local::inherited("follows");
    static STAYS: Local<u32> = Local::not_inherited("stays");
    let changes = Changes::new().local(&FOLLOWS, 1).local(&STAYS, 2);
    let program = task(async {
        blocking(|inside| {
            let behind =
                inside.block_on(async { (current::local(&FOLLOWS), current::local(&STAYS)) }).unwrap();
            ((inside.local(&FOLLOWS), inside.local(&STAYS)), behind)
        })
        .await
    });
    assert_eq!(sync_wait_with(changes, program).unwrap(), ((Some(1), None), (Some(1), None)));
}
