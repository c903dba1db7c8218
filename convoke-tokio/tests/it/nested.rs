//! `run` inside a task of Convoke's.

use std::time::Duration;

use convoke::inspect::tree;
use convoke::prelude::*;
use convoke::task::forever;
use convoke_tokio::{Workers, finish, run};

use crate::log::{Log, Transaction};

#[tokio::test]
async fn a_run_inside_a_run_is_a_task_of_the_outer_chain() {
    let printed = run(async {
        run(async {
            checkpoint().await;
            tree().find("outer").unwrap().to_string()
        })
        .named("inner")
        .await
    })
    .named("outer");
    let printed = printed.await.unwrap().unwrap();
    assert!(printed.contains("`outer`") && printed.contains("└─ `inner`"), "{printed}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_the_outer_chain_awaits_the_clean_up_of_the_inner_one() {
    let log = Log::default();
    let inside = log.clone();
    run(async move {
        let inner = run({
            let inside = inside.clone();
            async move { using(Transaction(inside), async |_| forever().await).await }
        });
        assert!(timeout(Duration::from_secs(1), inner).await.is_err());
        inside.note("timed out");
    })
    .await
    .unwrap();
    assert_eq!(log.lines(), ["rollback", "timed out"]);
}

#[tokio::test]
async fn the_token_of_the_inner_run_stops_that_one_alone() {
    let source = StopSource::new();
    source.request_stop(StopReason::Named("enough"));
    let reason = run(async move {
        let inner = run(async { forever().await }).stop_token(source.token()).await;
        checkpoint().await;
        inner.unwrap_err().reason()
    });
    assert_eq!(reason.await, Ok(Some(StopReason::Named("enough"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_inside_workers_is_a_task_on_the_workers() {
    let workers = Workers::new();
    let launched = launch(&workers).name("outer").start(async {
        run(async { (convoke::env::current::executor(), tree().find("outer").is_some()) }).await
    });
    let (executor, is_below) = convoke_tokio::join(launched).await.unwrap().unwrap();
    assert!(executor == convoke::executor::ExecutorRef::new(workers) && is_below);
}

#[tokio::test]
async fn a_run_in_a_spawned_tokio_task_is_a_chain_of_its_own() {
    let stays = run(async {
        let (begun, told) = convoke::sync::oneshot::channel();
        let apart = tokio::spawn(run(async {
            begun.send(()).unwrap();
            forever().await
        }));
        told.await.unwrap();
        Some(apart)
    });
    let apart = stays.await.unwrap().unwrap();
    finish(Duration::from_secs(60)).await.unwrap();
    assert_eq!(apart.await.unwrap().unwrap_err().reason(), Some(StopReason::Shutdown));
}
