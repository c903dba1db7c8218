//! `finish`: everything of Convoke's in a runtime ends, or is named.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sync::Event;
use convoke::task::forever;
use convoke_tokio::{finish, run};

use crate::log::{Log, Transaction, multi_thread};

#[tokio::test(start_paused = true)]
async fn chains_that_are_awaited_are_asked_to_stop_too() {
    let log = Log::default();
    let inside = log.clone();
    let handler =
        tokio::spawn(run(async move { using(Transaction(inside), async |_| forever().await).await }));
    tokio::task::yield_now().await;
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(log.lines(), ["rollback"]);
    assert_eq!(handler.await.unwrap().unwrap_err().reason(), Some(StopReason::Shutdown));
}

/// Each thread has a list for the chains that it begins.
#[test]
fn chains_of_all_threads_are_waited_for() {
    /// More threads than lists.
    const THREADS: u64 = 20;
    let log = Log::default();
    let runtime = multi_thread(2);
    let all_begun = Arc::new(std::sync::Barrier::new(THREADS as usize + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (handle, log, all_begun) = (runtime.handle().clone(), log.clone(), all_begun.clone());
            std::thread::spawn(move || {
                let _entered = handle.enter();
                let ends = async move |_: Exit| {
                    sleep(Duration::from_millis(5 * number)).await;
                    log.note("ended");
                };
                let work = async move { ensure(ends, forever()).await };
                let mut chain = Box::pin(run(work));
                assert!(chain.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                all_begun.wait();
                // Its reaper runs on the threads of the runtime.
                drop(chain);
            })
        })
        .collect();
    all_begun.wait();
    runtime.block_on(finish(Duration::from_secs(60))).unwrap();
    let ended = log.lines().len();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(ended, THREADS as usize);
}

#[tokio::test(start_paused = true)]
async fn chains_that_are_left_are_named_with_what_they_wait_for() {
    let release = Arc::new(Event::new());
    let slow =
        |release: Arc<Event>| async move { ensure(async move |_| release.wait().await, forever()).await };
    let named = tokio::spawn(run(slow(release.clone())).named("order 7"));
    let unnamed = tokio::spawn(run(slow(release.clone())));
    let quick = tokio::spawn(run(async { forever().await }));
    tokio::task::yield_now().await;
    let unfinished = finish(Duration::from_secs(1)).await.unwrap_err();
    let printed = unfinished.to_string();
    assert!(printed.starts_with("2 chains had not ended in time:\n"), "{printed}");
    assert_eq!(unfinished.chains().len(), 2);
    let order = unfinished.chains().find(|chain| chain.contains("`order 7`")).expect(&printed);
    assert!(order.contains("finish.rs"), "{order}");
    assert!(
        unfinished.chains().any(|chain| !chain.contains('`') && chain.contains("finish.rs")),
        "{printed}"
    );
    release.set();
    finish(Duration::from_secs(60)).await.unwrap();
    for handler in [named, unnamed, quick] {
        assert!(handler.await.unwrap().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_starts_meanwhile_is_asked_to_stop_and_a_later_one_is_not() {
    let release = Arc::new(Event::new());
    let waits = release.clone();
    let first = tokio::spawn(run(async move { ensure(async move |_| waits.wait().await, forever()).await }));
    tokio::task::yield_now().await;
    let finishing = tokio::spawn(finish(Duration::from_secs(60)));
    tokio::task::yield_now().await;
    let meanwhile = run(async { forever().await }).await;
    assert_eq!(meanwhile.unwrap_err().reason(), Some(StopReason::Shutdown));
    release.set();
    finishing.await.unwrap().unwrap();
    assert!(first.await.unwrap().is_err());
    assert_eq!(run(async { 7 }).await, Ok(7));
}

#[test]
fn the_chains_of_another_runtime_are_left_alone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (one, other) = (runtime(), runtime());
    let (tell, told) = convoke::sync::oneshot::channel();
    let goes_on = one.spawn(run(told));
    one.block_on(tokio::task::yield_now());
    other.block_on(async {
        drop(tokio::spawn(run(async { forever().await })));
        tokio::task::yield_now().await;
        finish(Duration::from_secs(60)).await.unwrap();
    });
    tell.send(7).unwrap();
    assert_eq!(one.block_on(goes_on).unwrap().unwrap().unwrap(), 7);
}
