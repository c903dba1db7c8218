//! Children that are started when there is capacity, and children that report when they are ready.
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::catch_stopped;
use convoke::prelude::*;
use convoke::scope::Bound;
use convoke::sender::prelude::*;
use convoke::task::{forever, stopped};
use convoke::testing::{explore_stops, explore_stops_with};

/// Runs a program, and returns its output.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap()
}

#[test]
fn no_child_is_made_before_there_is_capacity_for_it() {
    let most = run(async {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let bound = Bound::new(5);
        scope(async |s| {
            for n in 0..40 {
                let weight = 1 + n % 4;
                let (now, peak) = (running.clone(), most.clone());
                let make = || {
                    peak.fetch_max(now.fetch_add(weight, Ordering::Relaxed) + weight, Ordering::Relaxed);
                    async move {
                        for _ in 0..n % 3 {
                            checkpoint().await;
                        }
                        now.fetch_sub(weight, Ordering::Relaxed);
                    }
                };
                s.child().permit(bound.take(weight).await).spawn(make());
            }
        })
        .await;
        assert_eq!(bound.free(), 5);
        most.load(Ordering::Relaxed)
    });
    assert!((4..=5).contains(&most), "{most}");
}

#[test]
fn a_large_waiter_is_not_overtaken_and_one_that_leaves_lets_the_next_in() {
    let order = run(async {
        let bound = Bound::new(2);
        let held = bound.take(1).await;
        let order = std::sync::Mutex::new(Vec::new());
        let large = async {
            let _permit = bound.take(2).await;
            order.lock().unwrap().push("large");
        };
        let small = async {
            let _permit = bound.take(1).await;
            order.lock().unwrap().push("small");
        };
        let leaves = async {
            // Waits behind the large one, and is stopped by the timeout.
            let waits = timeout(Duration::from_millis(1), bound.take(2)).await;
            assert!(waits.is_err());
            drop(held);
        };
        join((leaves, large, small)).await;
        assert_eq!(bound.free(), 2);
        order.into_inner().unwrap()
    });
    assert_eq!(order, ["large", "small"]);
}

#[test]
fn a_weight_that_never_fits_is_refused() {
    assert!(catch_unwind(|| drop(Bound::new(2).take(3))).is_err());
}

#[test]
fn wherever_it_is_stopped_all_capacity_is_returned() {
    explore_stops(|| async {
        let bound = Bound::new(2);
        let ended = catch_stopped(scope(async |s| {
            for n in 0..4 {
                let permit = bound.take(1 + n % 2).await;
                s.child().permit(permit).spawn(async move {
                    checkpoint().await;
                    checkpoint().await;
                });
            }
        }))
        .await;
        assert_eq!(bound.free(), 2, "{ended:?}");
    });
}

#[test]
fn a_child_is_waited_for_until_it_is_ready_and_goes_on() {
    let (port, requests) = run(async {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        let port = scope(async |s| {
            let started = s.child().spawn_until_ready(async move |ready| {
                checkpoint().await;
                ready.report(80);
                checkpoint().await;
                count.fetch_add(1, Ordering::Relaxed);
            });
            started.await
        })
        .await;
        (port, requests.load(Ordering::Relaxed))
    });
    assert_eq!((port, requests), (Ok(80), 1));
}

#[test]
fn a_child_that_ends_before_it_is_ready_is_an_error_and_its_own_error_comes_first() {
    let early = run(async {
        scope(async |s| s.child().spawn_until_ready(async |_ready: convoke::scope::Ready<()>| {}).await).await
    });
    assert!(early.unwrap_err().to_string().contains("before it was ready"));

    let failed = run(async {
        scope(async |s| {
            let started = s.child().spawn_until_ready(async |ready| {
                let _ready: convoke::scope::Ready<u32> = ready;
                checkpoint().await;
                Err("no port")
            });
            // `EndedEarly` may come first. The scope still fails with the child's error.
            let _ = started.await;
            forever().await
        })
        .await
    });
    assert_eq!(failed, Err::<(), _>("no port"));
}

#[test]
fn a_stop_while_a_child_gets_ready_ends_it() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let held = probe.must_drop("child");
                let started = s.child().spawn_until_ready(async move |ready| {
                    let _held = held;
                    checkpoint().await;
                    ready.report(1);
                    checkpoint().await;
                });
                started.await
            })
            .await
        }
    });
    assert!(exploration.points() > 3, "{exploration}");
}

#[test]
fn results_are_taken_as_they_come_and_the_stopped_have_none() {
    let results = run(async {
        scope(async |s| {
            let mut results = s.results();
            for n in 0_u32..6 {
                results.spawn(async move {
                    for _ in n..6 {
                        checkpoint().await;
                    }
                    if n == 3 { stopped().await } else { n }
                });
            }
            let mut taken = Vec::new();
            while let Some(n) = results.next().await {
                taken.push(n);
                if n == 5 {
                    results.spawn(async { 7 });
                }
            }
            taken
        })
        .await
    });
    assert_eq!(results, [5, 4, 7, 2, 1, 0]);
}

#[test]
fn a_stop_while_results_are_awaited_ends_all() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            scope(async |s| {
                let mut results = s.results();
                for n in 0..3_u32 {
                    let held = probe.must_drop("child");
                    results.spawn(async move {
                        let _held = held;
                        checkpoint().await;
                        n
                    });
                }
                let mut sum = 0;
                while let Some(n) = results.next().await {
                    sum += n;
                }
                sum
            })
            .await
        }
    });
    assert!(exploration.points() > 3, "{exploration}");
}
