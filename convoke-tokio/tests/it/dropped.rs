//! tokio cancels by dropping: the chain is asked to stop, and its clean-up is awaited.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use convoke::prelude::*;
use convoke::task::forever;
use convoke_tokio::{finish, run};

use crate::log::{Log, OnDrop, Transaction, multi_thread};

/// Opens a transaction, and waits for ever in two children.
async fn never_ends(log: Log) {
    using(Transaction(log.clone()), async |_| {
        scope(async |s| {
            let dropped = OnDrop(log.clone(), "child dropped");
            s.spawn(async move {
                let _dropped = dropped;
                std::future::pending::<()>().await
            });
            s.spawn(async move { forever().await });
            log.note("begun");
            forever().await
        })
        .await
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn dropped_by_select_its_clean_up_is_awaited_by_finish() {
    let log = Log::default();
    tokio::select! {
        biased;
        _ = run(never_ends(log.clone())) => unreachable!(),
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!(log.lines(), ["begun"], "the drop itself does not wait");
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["begun", "child dropped", "rollback"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_by_a_timeout_of_tokios_its_clean_up_is_awaited_by_finish() {
    let log = Log::default();
    assert!(tokio::time::timeout(Duration::from_secs(1), run(never_ends(log.clone()))).await.is_err());
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["begun", "child dropped", "rollback"]);
}

#[test]
fn aborted_on_a_multi_thread_runtime_its_clean_up_is_awaited() {
    let log = Log::default();
    let (begun, inside) = (std::sync::Arc::new(convoke::sync::Event::new()), log.clone());
    let told = begun.clone();
    multi_thread(2).block_on(async move {
        let handler = tokio::spawn(run(async move {
            ensure(
                async |exit: Exit| {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    inside.note(exit.to_string());
                },
                async {
                    told.set();
                    forever().await
                },
            )
            .await
        }));
        begun.wait().await;
        handler.abort();
        assert!(handler.await.unwrap_err().is_cancelled());
        finish(Duration::from_secs(60)).await.unwrap();
    });
    assert_eq!(log.lines(), ["was stopped (its result is not wanted any more)"]);
}

/// The reaper is a task of the runtime that polled it, wherever it is dropped.
#[test]
fn dropped_on_a_thread_that_knows_no_runtime_it_is_awaited_by_its_own() {
    let runtime = multi_thread(1);
    let log = Log::default();
    let mut chain = Box::pin(run(never_ends(log.clone())));
    {
        let _entered = runtime.enter();
        let polled = chain.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
    }
    std::thread::spawn(move || drop(chain)).join().unwrap();
    runtime.block_on(finish(Duration::from_secs(60))).unwrap();
    assert_eq!(log.lines(), ["begun", "child dropped", "rollback"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_clean_up_that_the_reaper_awaits_ends_nothing_else() {
    let log = Log::default();
    let inside = log.clone();
    let clumsy = run(async move {
        let _dropped = OnDrop(inside, "the rest");
        let clean_up = async |_| {
            if true {
                panic!("clean-up fails on purpose");
            }
        };
        ensure(clean_up, forever()).await
    });
    assert!(tokio::time::timeout(Duration::from_secs(1), clumsy).await.is_err());
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["the rest"]);
    assert_eq!(run(async { 7 }).await, Ok(7));
}

#[tokio::test]
async fn a_chain_that_has_ended_and_was_not_polled_again_is_just_dropped() {
    let (tell, told) = convoke::sync::oneshot::channel::<()>();
    let mut chain = Box::pin(run(told));
    assert!(chain.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(tell);
    drop(chain);
    finish(Duration::from_secs(60)).await.unwrap();
}
