//! `run_local`: chains that are not `Send`, in a `LocalSet`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use convoke::Executor;
use convoke::env::current;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::task::forever;
use convoke_tokio::{finish, run_local};
use tokio::task::LocalSet;

use crate::log::{Log, OnDrop, Transaction};

#[tokio::test(start_paused = true)]
async fn children_that_are_not_send_share_what_is_not_send() {
    let chain = run_local(async {
        let sum = Rc::new(Cell::new(0));
        scope(async |s| {
            for n in 1..=3 {
                let sum = sum.clone();
                s.child().local().spawn(async move {
                    sleep(Duration::from_secs(n)).await;
                    let more = tokio::task::spawn_local(async move { n }).await.unwrap();
                    sum.set(sum.get() + more);
                });
            }
        })
        .await;
        sum
    });
    assert_eq!(LocalSet::new().run_until(chain).await.unwrap().get(), 6);
}

#[tokio::test(start_paused = true)]
async fn dropped_by_a_timeout_its_clean_up_is_awaited_in_the_local_set() {
    let log = Log::default();
    let inside = log.clone();
    LocalSet::new()
        .run_until(async move {
            let not_send = Rc::new(());
            let chain = run_local(async move {
                let _not_send = not_send;
                using(Transaction(inside), async |_| forever().await).await
            });
            assert!(tokio::time::timeout(Duration::from_secs(1), chain).await.is_err());
            finish(Duration::from_secs(60)).await.unwrap();
        })
        .await;
    assert_eq!(log.lines(), ["rollback"]);
}

#[tokio::test(start_paused = true)]
async fn a_local_set_that_is_dropped_drops_the_chain_and_its_destructors_run() {
    let log = Log::default();
    let set = LocalSet::new();
    let (dropped, begun) = (OnDrop(log.clone(), "dropped"), Arc::new(Event::new()));
    let tells = begun.clone();
    let chain = run_local(async move {
        let _dropped = dropped;
        tells.set();
        sleep(Duration::from_secs(3600)).await;
    });
    set.spawn_local(chain);
    set.run_until(begun.wait()).await;
    drop(set);
    assert_eq!(log.lines(), ["dropped"]);
    finish(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test]
async fn outside_a_local_set_it_panics_before_anything_runs() {
    let log = Log::default();
    let inside = log.clone();
    let error = tokio::task::LocalSet::new()
        .run_until(async { tokio::spawn(async move { tokio::task::spawn_local(async {}).await }).await })
        .await;
    assert!(error.is_err(), "tokio's own call panics there, too");
    // `block_on` of a current-thread runtime is no `LocalSet`.
    let chain = run_local(async move { inside.note("ran") });
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let mut chain = Box::pin(chain);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        _ = chain.as_mut().poll(&mut cx);
    }));
    assert!(polled.is_err());
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn panics_and_stops_are_told_as_by_run() {
    LocalSet::new()
        .run_until(async {
            let panicked = tokio::task::spawn_local(run_local(async { panic!("a mistake") })).await;
            assert!(panicked.unwrap_err().is_panic());
            let source = StopSource::new();
            source.request_stop(StopReason::Named("reload"));
            let chain = run_local(async { forever().await }).named("local").stop_token(source.token());
            assert_eq!(chain.await.unwrap_err().reason(), Some(StopReason::Named("reload")));
            let nested = run_local(async { run_local(async { Rc::new(7) }).await }).await;
            assert_eq!(*nested.unwrap().unwrap(), 7);
        })
        .await;
}

/// One after the other, chains of a thread use one loop again, and with it one owner thread.
#[tokio::test]
async fn chains_of_a_thread_use_a_loop_again() {
    LocalSet::new()
        .run_until(async {
            let owner = || run_local(async { current::executor().owner_thread().unwrap().id() });
            assert_eq!(owner().await.unwrap(), owner().await.unwrap());
            let held = run_local(async { current::executor() }).await.unwrap();
            assert_ne!(owner().await.unwrap(), held.owner_thread().unwrap().id(), "it could be posted to");
        })
        .await;
}
