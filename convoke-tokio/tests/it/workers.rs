//! `Workers`: children that run at the same time, on tokio's threads.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use convoke::prelude::*;
use convoke::run_on;
use convoke::scope::scope_on;
use convoke_tokio::{Workers, join, run};

use crate::log::multi_thread;

/// If both do not run at the same time, none gets past the barrier.
#[test]
fn two_children_run_at_the_same_time() {
    multi_thread(2).block_on(async {
        let (workers, barrier) = (Workers::new(), Arc::new(Barrier::new(2)));
        run(async move {
            scope_on(&workers, async |s| {
                for _ in 0..2 {
                    let barrier = barrier.clone();
                    s.spawn(async move { _ = barrier.wait() });
                }
            })
            .await;
        })
        .await
        .unwrap();
    });
}

/// The child was woken by the worker that now waits for it: it must not be kept in the slot of that worker.
#[test]
fn a_child_runs_while_its_parent_blocks_the_worker_that_spawned_it() {
    multi_thread(2).block_on(async {
        let (workers, barrier) = (Workers::new(), Arc::new(Barrier::new(2)));
        let parent = launch(&workers).start(async move {
            for _ in 0..100 {
                let other = barrier.clone();
                scope(async |s| {
                    s.spawn(async move { _ = other.wait() });
                    barrier.wait();
                })
                .await;
            }
        });
        join(parent).await.unwrap();
    });
}

/// A plain tokio task posts from its worker, too.
#[test]
fn work_that_a_tokio_task_launches_runs_while_that_task_blocks_its_worker() {
    let runtime = multi_thread(2);
    let workers = Workers::on(runtime.handle());
    let launches = runtime.spawn(async move {
        let barrier = Arc::new(Barrier::new(2));
        for _ in 0..100 {
            let other = barrier.clone();
            let launched = launch(&workers).start(async move { _ = other.wait() });
            barrier.wait();
            join(launched).await.unwrap();
        }
    });
    runtime.block_on(launches).unwrap();
}

#[test]
fn spawn_on_and_run_on_hop_to_the_workers_and_back() {
    multi_thread(2).block_on(async {
        let workers = Workers::new();
        run(async move {
            let owner = convoke::env::current::executor();
            let there = run_on(&workers, async { convoke::env::current::executor() }).await;
            assert!(there == convoke::executor::ExecutorRef::new(workers.clone()));
            assert!(convoke::env::current::executor() == owner);
            scope(async |s| {
                let there = s.child().on(&workers).spawn_future(async { convoke::env::current::executor() });
                assert!(there.await == convoke::executor::ExecutorRef::new(workers.clone()));
            })
            .await;
        })
        .await
        .unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn the_paused_clock_of_tokio_drives_sleeps_on_workers() {
    let workers = Workers::new();
    let begun = tokio::time::Instant::now();
    let launched = launch(&workers).start(async {
        scope(async |s| {
            s.spawn(async { sleep(Duration::from_secs(3600)).await });
            assert!(
                timeout(Duration::from_secs(60), tokio::time::sleep(Duration::from_secs(90))).await.is_err()
            );
        })
        .await
    });
    join(launched).await.unwrap();
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(3600) && took < Duration::from_secs(3601), "{took:?}");
}

#[test]
fn the_runners_end_with_the_last_handle() {
    let runtime = multi_thread(2);
    runtime.block_on(async {
        let workers = Workers::new();
        assert_eq!(join(launch(&workers).start(async { 7 })).await, Ok(7));
        drop(workers);
        while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn many_children_on_workers_all_run_and_use_tokio() {
    multi_thread(4).block_on(async {
        let workers = Workers::new();
        let sum = run(async move {
            scope_on(&workers, async |s| {
                let children: Vec<_> = (0..1000_u64)
                    .map(|n| {
                        s.spawn_future(async move {
                            tokio::task::yield_now().await;
                            checkpoint().await;
                            tokio::spawn(async move { n }).await.unwrap()
                        })
                    })
                    .collect();
                let mut sum = 0;
                for child in children {
                    sum += child.await;
                }
                sum
            })
            .await
        });
        assert_eq!(sum.await, Ok(499_500));
    });
}
