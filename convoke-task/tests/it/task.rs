//! Tasks: the guarantees that an `async fn` can rely on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::env::Changes;
use convoke::executor::RunLoop;
use convoke::executor::{BlockOn, reschedule};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;
use convoke::task::task;

#[test]
fn a_future_is_a_sender_of_what_it_returns() {
    assert_eq!(sync_wait(task(async { 42 })), Outcome::Value(42));
}

#[test]
fn awaiting_a_sender_yields_its_value_or_a_result_where_it_can_fail() {
    let outcome = sync_wait(task(async {
        let value: u32 = just(1).await;
        let failed: Result<u32, std::num::ParseIntError> = just_from(|| "x".parse::<u32>()).transpose().await;
        let by_hand: Result<u32, &str> = just_error::<u32, _>("no").into_result().await;
        (value, failed.is_err(), by_hand)
    }));
    assert_eq!(outcome, Outcome::Value((1, true, Err("no"))));
}

#[test]
fn an_error_need_not_be_an_error_type_to_be_awaited_as_one() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    let outcome = sync_wait(task(async {
        let text: Result<u32, String> = just_error("no".to_owned()).await;
        let number: Result<u32, i32> = just_error(-1).await;
        let boxed: Result<u32, Boxed> = just_error(Boxed::from("neither")).await;
        (text, number, boxed.map_err(|error| error.to_string()))
    }));
    assert_eq!(outcome, Outcome::Value((Err("no".into()), Err(-1), Err("neither".into()))));
}

#[test]
fn a_task_resumes_on_its_executor_wherever_an_awaited_sender_completes() {
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    let outcome = sync_wait(task(async move {
        let here = std::thread::current().id();
        for _ in 0..if cfg!(miri) { 10 } else { 100 } {
            let there = schedule(&executor).then(|()| std::thread::current().id()).await;
            assert_ne!(there, here);
            assert_eq!(std::thread::current().id(), here);
        }
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_million_inline_awaits_run_flat() {
    const MANY: u64 = if cfg!(miri) { 200 } else { 1_000_000 };
    let outcome = sync_wait(task(async {
        let mut sum = 0_u64;
        for n in 0..MANY {
            sum += just(n).await;
        }
        sum
    }));
    assert_eq!(outcome, Outcome::Value(MANY * (MANY - 1) / 2));
}

#[test]
fn a_task_that_awaits_a_stopped_sender_unwinds_and_is_stopped() {
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let count = Count(dropped.clone());
    async fn inner(_count: Count) {
        just_stopped::<()>().await;
        unreachable!("not resumed");
    }
    assert_eq!(sync_wait(task(async move { inner(count).await })), Outcome::Stopped);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_stop_request_reaches_what_is_awaited() {
    let source = StopSource::new();
    let token = source.token();
    let thread = std::thread::spawn(move || {
        source.request_stop(StopReason::Requested);
    });
    let outcome = sync_wait_with(Changes::new().stop_token(token), task(async { never::<()>().await }));
    assert_eq!(outcome, Outcome::Stopped);
    thread.join().unwrap();
}

#[test]
#[should_panic(expected = "boom")]
fn a_panic_is_resumed_where_the_task_is_waited_for() {
    let _ = sync_wait(task(async {
        just(1).await;
        panic!("boom");
    }));
}

#[test]
fn a_task_awaits_a_task() {
    let outcome = sync_wait(task(async {
        let child = task(async { just(20).await + 1 }).await;
        let pool = ThreadPool::new(1).unwrap();
        let far = task(async { 21 }).on(&pool.executor()).await;
        child + far
    }));
    assert_eq!(outcome, Outcome::Value(42));
}

#[test]
fn an_abandoned_operation_is_asked_to_stop_and_waited_for() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let ended = Arc::new(AtomicUsize::new(0));
    let seen = ended.clone();
    let outcome = sync_wait(task(async move {
        let slow = never::<()>().starts_on(&executor).upon_stopped(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let mut slow = Box::pin(slow.into_awaited());
        // Started, and then dropped while it runs, as a foreign `select!` does.
        std::future::poll_fn(|cx| {
            assert!(slow.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(slow);
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}

#[test]
fn a_task_that_is_queued_on_a_loop_that_ends_is_stopped_with_it() {
    let run_loop = RunLoop::new();
    let executor = run_loop.executor();
    let waiting = std::thread::spawn(move || sync_wait(task(async { 1 }).starts_on(&executor)));
    while !run_loop.run_one() {
        std::thread::yield_now();
    }
    drop(run_loop);
    assert!(matches!(waiting.join().unwrap(), Outcome::Stopped | Outcome::Value(1)));
}

#[test]
fn a_task_moves_to_another_executor_and_back() {
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    let outcome = sync_wait(task(async move {
        let here = std::thread::current().id();
        for _ in 0..50 {
            let before = reschedule(&executor).await.unwrap();
            assert!(convoke::env::current::executor().is(&executor));
            assert!(convoke::env::current::env(|env| env.is_some_and(|env| env.executor().is(&executor))));
            assert_ne!(std::thread::current().id(), here);
            just(()).await;
            schedule(&before).await;
            assert_ne!(std::thread::current().id(), here);
            reschedule(&before).await.unwrap();
            assert_eq!(std::thread::current().id(), here);
            checkpoint().await;
        }
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_caught_stop_is_a_value_and_the_frame_is_gone_before() {
    let outcome = sync_wait(task(async {
        let owned = Arc::new(());
        let other = owned.clone();
        let caught = catch_stopped(async move {
            let _other = other;
            stopped().await
        })
        .await;
        (caught.unwrap_err().reason(), Arc::strong_count(&owned))
    }));
    assert_eq!(outcome, Outcome::Value((None, 1)));
}

#[test]
fn a_checkpoint_is_where_a_stop_is_honoured() {
    let source = StopSource::new();
    let token = source.token();
    let outcome = sync_wait_with(
        Changes::new().stop_token(token),
        task(async move {
            checkpoint().await;
            source.request_stop(StopReason::Named("enough"));
            assert_eq!(convoke::env::current::stop_reason(), Some(StopReason::Named("enough")));
            checkpoint().await;
            unreachable!("stopped before")
        }),
    );
    assert_eq!(outcome, Outcome::<()>::Stopped);
}

#[test]
fn a_task_that_ends_with_a_stop_request_of_another_thread_in_flight_delivers_once() {
    let run_loop = RunLoop::new();
    let source = StopSource::new();
    let outcome = run_loop.block_on_with(Changes::new().stop_token(source.token()), async {
        let value = Arc::new(1);
        // Asked from another thread while it runs, it ends before the remote wake is received.
        std::thread::scope(|threads| {
            threads.spawn(|| source.request_stop(StopReason::Requested));
        });
        value
    });
    let mut value = outcome.unwrap();
    assert!(Arc::get_mut(&mut value).is_some());
}

#[test]
fn a_task_on_the_inline_executor_yields_without_growing_the_stack() {
    let inline = convoke::executor::InlineExecutor;
    let outcome = sync_wait(
        task(async move {
            for _ in 0..if cfg!(miri) { 200 } else { 1_000_000 } {
                checkpoint().await;
            }
            schedule(&inline).await;
            7
        })
        .starts_on(&inline),
    );
    assert_eq!(outcome, Outcome::Value(7));
}
