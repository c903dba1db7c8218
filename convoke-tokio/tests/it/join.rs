//! `join`: awaiting, in a tokio task, what was launched elsewhere.

use std::sync::Arc;
use std::time::Duration;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::Event;
use convoke::task::{forever, task};
use convoke_tokio::{finish, join, run};

use crate::log::Log;

#[tokio::test]
async fn what_runs_on_a_pool_is_awaited_without_blocking_tokio() {
    let pool = ThreadPool::new(1).unwrap();
    let (go, beside) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let waits = go.clone();
    let launched = launch(&pool.executor()).start(async move {
        waits.wait().await;
        7
    });
    let tells = beside.clone();
    // It runs on this one thread, while the launched task is awaited.
    tokio::spawn(async move {
        tells.set();
        go.set();
    });
    assert_eq!(join(launched).await, Ok(7));
    assert!(beside.is_set());
}

#[tokio::test]
async fn a_stop_and_a_panic_of_the_launched_task_are_told() {
    let pool = ThreadPool::new(1).unwrap();
    let launched = launch(&pool.executor()).start(async { forever().await });
    launched.request_stop(StopReason::Named("enough"));
    assert_eq!(join(launched).await.unwrap_err().reason(), Some(StopReason::Named("enough")));
    let executor = pool.executor();
    let joined =
        tokio::spawn(async move { join(launch(&executor).start(async { panic!("a mistake") })).await });
    assert!(joined.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn dropped_it_asks_the_launched_task_to_stop_and_finish_waits_for_it() {
    let (pool, log) = (ThreadPool::new(1).unwrap(), Log::default());
    let (begun, inside) = (Arc::new(Event::new()), log.clone());
    let tells = begun.clone();
    let launched = launch(&pool.executor()).start(async move {
        ensure(
            async |exit: Exit| {
                sleep(Duration::from_millis(1)).await;
                inside.note(exit.to_string());
            },
            async {
                tells.set();
                forever().await
            },
        )
        .await
    });
    tokio::select! {
        biased;
        () = begun.wait() => {}
        _ = join(launched) => unreachable!(),
    }
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["was stopped (its result is not wanted any more)"]);
}

#[tokio::test]
async fn one_that_was_never_polled_is_asked_to_stop_too() {
    let pool = ThreadPool::new(1).unwrap();
    let launched = launch(&pool.executor()).start(async { forever().await });
    drop(join(launched));
    finish(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test]
async fn finish_asks_what_is_joined_to_stop() {
    let pool = ThreadPool::new(1).unwrap();
    let launched = launch(&pool.executor()).start(async { forever().await });
    let joined = tokio::spawn(join(launched));
    tokio::task::yield_now().await;
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(joined.await.unwrap().unwrap_err().reason(), Some(StopReason::Shutdown));
}

#[tokio::test]
async fn a_sender_is_awaited_inside_run_without_blocking_tokio() {
    let pool = ThreadPool::new(1).unwrap();
    let (go, beside) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let waits = go.clone();
    let on_the_pool = task(async move {
        waits.wait().await;
        20
    });
    let sender = on_the_pool.starts_on(&pool.executor()).then(|number| number + 1);
    let tells = beside.clone();
    tokio::spawn(async move {
        tells.set();
        go.set();
    });
    assert_eq!(run(async move { sender.into_awaited().await * 2 }).await, Ok(42));
    assert!(beside.is_set());
}
