//! Concurrent work over many items: bounded, in any order, and awaited when it is over early.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{for_each_concurrent, forever, generator, map_concurrent, stopped};
use convoke::testing::{Probe, explore_stops_with};

/// Runs a program, and returns its output.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap()
}

async fn rounds(n: u32) -> u32 {
    for _ in 0..n {
        checkpoint().await;
    }
    n
}

#[test]
fn results_come_as_they_are_done_or_in_the_order_of_the_items() {
    let (as_done, in_order) = run(async {
        let as_done = map_concurrent([3, 1, 2, 0], 3, rounds).collect::<Vec<_>>().await;
        let in_order = map_concurrent([3, 1, 2, 0], 3, rounds).in_order().collect::<Vec<_>>().await;
        (as_done, in_order)
    });
    assert_eq!(as_done, [1, 0, 2, 3]);
    assert_eq!(in_order, [3, 1, 2, 0]);
}

#[test]
fn no_more_run_at_a_time_than_the_limit_says() {
    let most = run(async {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for in_order in [false, true] {
            let map = map_concurrent(0..50, 4, async |n: u32| {
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                rounds(n % 7).await;
                running.fetch_sub(1, Ordering::Relaxed);
            });
            let map = if in_order { map.in_order() } else { map };
            assert_eq!(map.collect::<Vec<_>>().await.len(), 50);
        }
        most.into_inner()
    });
    assert_eq!(most, 4);
}

#[test]
fn items_of_a_stream_are_taken_when_there_is_room() {
    let (taken_at_first, sum) = run(async {
        let taken = AtomicUsize::new(0);
        let mut numbers = generator(async |y| {
            for n in 0..20 {
                taken.fetch_add(1, Ordering::Relaxed);
                y.yield_value(n).await;
                checkpoint().await;
            }
        });
        let mut map = map_concurrent(&mut numbers, 2, async |n: u32| {
            sleep(Duration::from_micros(1)).await;
            n
        });
        let mut sum = map.next().await.unwrap();
        let taken_at_first = taken.load(Ordering::Relaxed);
        while let Some(n) = map.next().await {
            sum += n;
        }
        (taken_at_first, sum)
    });
    assert!(taken_at_first <= 3, "{taken_at_first}");
    assert_eq!(sum, 190);
}

#[test]
fn those_that_were_woken_are_not_overtaken_for_ever() {
    let first = run(async {
        let done = Mutex::new(None);
        let waits = async |n: u32| {
            if n == 0 {
                checkpoint().await;
                *done.lock().unwrap() = Some(());
            }
            n
        };
        let mut map = map_concurrent(0.., 2, waits);
        for n in 0.. {
            map.next().await;
            if done.lock().unwrap().is_some() {
                map.close().await;
                return n;
            }
        }
        unreachable!()
    });
    assert!(first <= 64, "{first}");
}

/// Owns something with awaited clean-up, for a number of checkpoints.
async fn holds(probe: Probe, n: u32) -> u32 {
    probe.acquired("held");
    let clean_up = async |_| {
        checkpoint().await;
        probe.cleaned_up("held");
    };
    ensure(clean_up, rounds(n)).await
}

#[test]
fn a_stop_at_any_point_ends_all_with_their_clean_up() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let map = map_concurrent([2, 0, 3, 1], 2, |n| holds(probe.clone(), n));
            using(map, async |mut map| {
                let mut sum = 0;
                while let Some(n) = map.next().await {
                    sum += n;
                    sleep(Duration::from_secs(1)).await;
                }
                sum
            })
            .await
        }
    });
    assert!(exploration.points() > 5, "{exploration}");
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            for_each_concurrent([2, 0, 3, 1], 3, async |n| {
                holds(probe.clone(), n).await;
                if n == 1 { Err("one") } else { Ok(()) }
            })
            .await
        }
    });
    assert!(exploration.points() > 3, "{exploration}");
}

#[test]
fn the_first_error_stops_the_others_and_waits_for_their_clean_up() {
    let (ended, cleaned) = run(async {
        let cleaned = AtomicUsize::new(0);
        let waits = async |n: u32| {
            let clean_up = async |exit: Exit| {
                checkpoint().await;
                cleaned.fetch_add(usize::from(exit.is_stopped()), Ordering::Relaxed);
            };
            ensure(clean_up, async { if n == 2 { Err("two") } else { forever().await } }).await
        };
        let each = for_each_concurrent(0..9, 4, waits).await;
        let collected = map_concurrent(0..9, 4, waits).try_collect::<Vec<()>>().await;
        ((each, collected), cleaned.into_inner())
    });
    assert_eq!(ended, (Err("two"), Err("two")));
    // 0 and 1 end before it, both times. Later items were not started, or were stopped.
    assert!(cleaned >= 4, "{cleaned}");
}

#[test]
fn a_panic_of_one_goes_on_when_the_others_have_ended() {
    let ended = std::sync::Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let program = async move {
        for_each_concurrent(0..3, 3, async |n| {
            let clean_up = async |_| {
                checkpoint().await;
                count.fetch_add(1, Ordering::Relaxed);
            };
            ensure(clean_up, async {
                if n == 1 {
                    panic!("one");
                }
                forever().await
            })
            .await;
        })
        .await
    };
    let panic = catch_unwind(AssertUnwindSafe(|| sync_wait(task(program)))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"one"));
    assert!(ended.load(Ordering::Relaxed) >= 2);
}

#[test]
fn an_item_that_stops_by_itself_stops_the_whole() {
    let outcome = sync_wait(task(async {
        map_concurrent(0..3, 2, async |n| if n == 1 { stopped().await } else { rounds(n).await })
            .collect::<Vec<_>>()
            .await
    }));
    assert_eq!(outcome, Outcome::Stopped);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let refused = catch_unwind(|| map_concurrent([1], 0, async |n: i32| n));
    assert!(refused.is_err());
}
