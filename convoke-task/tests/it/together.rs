//! `join`, `try_join`, `race`: each outcome at each index, and no branch dropped while it runs.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;

use crate::doors::{Door, Ledger, outcome_of};

type Branch = Pin<Box<dyn Future<Output = Result<usize, String>> + Send>>;

/// Creates three branches. The one at `index` ends by `door`; the others end when they are asked to stop,
/// after a clean-up with several checkpoints.
fn three(ledger: &Ledger, index: usize, door: Door, turns: usize) -> [Branch; 3] {
    core::array::from_fn(|n| -> Branch {
        if n == index {
            Box::pin(crate::doors::ends_by(door, turns, n))
        } else {
            Box::pin(ledger.clone().waits())
        }
    })
}

fn tuple<T>([a, b, c]: [T; 3]) -> (T, T, T) {
    (a, b, c)
}

#[test]
fn a_try_join_ends_by_the_door_of_the_branch_that_failed_wherever_that_is() {
    for door in [Door::Error, Door::Stopped, Door::Panic] {
        for index in 0..3 {
            for turns in 0..3 {
                let expected = match door {
                    Door::Error => Outcome::Value(Err(format!("error {index}"))),
                    Door::Stopped => Outcome::Stopped,
                    _ => Outcome::Panicked(Panic::new(format!("panic {index}"))),
                };
                let story = format!("{door:?} at {index} after {turns}");
                let ledger = Ledger::default();
                let branches = tuple(three(&ledger, index, door, turns));
                let ended = outcome_of(async { try_join(branches).await.map(|_| ()) });
                crate::doors::assert_same(ended, &expected, &story);
                ledger.assert_drained(&story);

                let ledger = Ledger::default();
                let branches = Vec::from(three(&ledger, index, door, turns));
                let ended = outcome_of(async { try_join(branches).await.map(|_| ()) });
                crate::doors::assert_same(ended, &expected, &format!("vector: {story}"));
                ledger.assert_drained(&story);
            }
        }
    }
}

#[test]
fn a_join_has_all_values_in_order_whichever_is_last() {
    for last in 0..3_usize {
        let branch = move |n: usize| async move {
            for _ in 0..(if n == last { 5 } else { n }) {
                checkpoint().await;
            }
            n
        };
        let ended = outcome_of(async move { join((branch(0), branch(1), branch(2))).await });
        assert_eq!(ended, Outcome::Value((0, 1, 2)));
        let ended = outcome_of(async move { join((0..3).map(branch).collect::<Vec<_>>()).await });
        assert_eq!(ended, Outcome::Value(vec![0, 1, 2]));
    }
}

#[test]
fn a_join_is_stopped_with_a_branch_and_panics_with_one() {
    for door in [Door::Stopped, Door::Panic] {
        for index in 0..3 {
            let expected = match door {
                Door::Stopped => Outcome::Stopped,
                _ => Outcome::Panicked(Panic::new(format!("panic {index}"))),
            };
            let ledger = Ledger::default();
            let branches = tuple(three(&ledger, index, door, 1));
            let ended = outcome_of(async { join(branches).await });
            crate::doors::assert_same(ended.map(|_| ()), &expected, "tuple");
            ledger.assert_drained("tuple");
            let ledger = Ledger::default();
            let branches = Vec::from(three(&ledger, index, door, 1));
            let ended = outcome_of(async { join(branches).await });
            crate::doors::assert_same(ended.map(|_| ()), &expected, "vector");
            ledger.assert_drained("vector");
        }
    }
}

#[test]
fn a_race_is_won_wherever_the_winner_is_and_the_losers_clean_up_first() {
    for index in 0..3 {
        for turns in 0..3 {
            let story = format!("at {index} after {turns}");
            let ledger = Ledger::default();
            let branches = tuple(three(&ledger, index, Door::Value, turns));
            assert_eq!(outcome_of(async { race(branches).await }), Outcome::Value(Ok(index)), "{story}");
            ledger.assert_drained(&story);
            ledger.assert_reasons(StopReason::Lost);
            let ledger = Ledger::default();
            let branches = Vec::from(three(&ledger, index, Door::Value, turns));
            assert_eq!(
                outcome_of(async { race(branches).await }),
                Outcome::Value(Ok(index)),
                "vector: {story}"
            );
            ledger.assert_drained(&story);
            ledger.assert_reasons(StopReason::Lost);
        }
    }
}

#[test]
fn a_branch_that_stops_by_itself_is_out_of_the_race() {
    for index in 0..3 {
        let branch = move |n: usize| async move {
            checkpoint().await;
            if n != index {
                stopped().await;
            }
            checkpoint().await;
            n
        };
        let ended = outcome_of(async move { race((branch(0), branch(1), branch(2))).await });
        assert_eq!(ended, Outcome::Value(index));
        let ended = outcome_of(async move { race((0..3).map(branch).collect::<Vec<_>>()).await });
        assert_eq!(ended, Outcome::Value(index));
    }
}

#[test]
fn a_race_in_which_all_stop_is_stopped_and_so_is_one_without_runners() {
    async fn stops() -> u8 {
        stopped().await
    }
    let ended = outcome_of(async { race((stops(), stops())).await });
    assert_eq!(ended, Outcome::Stopped);
    let ended = outcome_of(async { race(vec![stops(), stops()]).await });
    assert_eq!(ended, Outcome::Stopped);
    let ended = outcome_of(async { race(Vec::<std::future::Ready<u8>>::new()).await });
    assert_eq!(ended, Outcome::Stopped);
    let ended = outcome_of(async { join(Vec::<std::future::Ready<u8>>::new()).await });
    assert_eq!(ended, Outcome::Value(vec![]));
}

#[test]
fn a_panic_of_a_loser_outranks_the_winner() {
    async fn loser() -> u8 {
        let _ = catch_stopped(async { never::<()>().await }).await;
        panic!("in the clean-up");
    }
    let ended = outcome_of(async { race((loser(), async { 1 })).await });
    crate::doors::assert_same(ended, &Outcome::Panicked(Panic::new("in the clean-up")), "tuple");
}

#[test]
fn the_value_of_a_loser_that_comes_nevertheless_is_dropped() {
    let alive = Arc::new(());
    let late = alive.clone();
    let loser = async move {
        let _ = catch_stopped(async { never::<()>().await }).await;
        Some(late)
    };
    let ended = outcome_of(async { race((loser, async { None })).await });
    assert_eq!(ended, Outcome::Value(None));
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn branches_that_have_not_begun_when_all_is_over_do_not_begin() {
    let branch = |end: bool| async move {
        if end {
            return Err::<(), _>("over");
        }
        unreachable!("begun after the end");
    };
    let ended = outcome_of(async {
        let first = try_join((branch(true), branch(false))).await;
        let second = try_join(vec![branch(true), branch(false)]).await;
        (first.is_err(), second.is_err())
    });
    assert_eq!(ended, Outcome::Value((true, true)));
}

#[test]
fn of_a_vector_only_the_woken_are_polled() {
    let polls = Arc::new(AtomicUsize::new(0));
    struct Counted<F>(Pin<Box<F>>, Arc<AtomicUsize>);
    impl<F: Future> Future for Counted<F> {
        type Output = F::Output;
        fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<F::Output> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.as_mut().poll(cx)
        }
    }
    let seen = polls.clone();
    let ended = outcome_of(async move {
        // Each waits for its turn: one is woken at a time.
        let turns: Vec<_> = (0..100)
            .map(|n| {
                Counted(
                    Box::pin(async move {
                        for _ in 0..n {
                            checkpoint().await;
                        }
                    }),
                    seen.clone(),
                )
            })
            .collect();
        join(turns).await.len()
    });
    assert_eq!(ended, Outcome::Value(100));
    // Polled once at the start, and once for each checkpoint.
    assert_eq!(polls.load(Ordering::Relaxed), 100 + 99 * 100 / 2);
}

#[test]
fn a_stop_from_around_reaches_every_branch_wherever_it_waits() {
    for stop_after in 0..6 {
        let ledger = Ledger::default();
        let (a, b) = (ledger.clone(), ledger.clone());
        let source = StopSource::new();
        let asks = source.clone();
        let asking = async move {
            for _ in 0..stop_after {
                checkpoint().await;
            }
            asks.request_stop(StopReason::Shutdown);
            never::<()>().await
        };
        let program = task(async move {
            let inner: Vec<Branch> = vec![Box::pin(a.waits()), Box::pin(b.waits())];
            join((asking, join(inner), join((async { checkpoint().await }, async { never::<()>().await }))))
                .await
        });
        let ended = sync_wait_with(Changes::new().stop_token(source.token()), program);
        assert!(ended.is_stopped(), "after {stop_after}");
        ledger.assert_drained("from around");
        ledger.assert_reasons(StopReason::Shutdown);
    }
}

#[test]
fn branches_awaken_from_other_threads() {
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    let ended = outcome_of(async move {
        let mut sum = 0;
        for _ in 0..50 {
            let all: Vec<_> = (0..20_u64).map(|n| schedule(&executor).then(move |()| n)).collect();
            sum += join(all).await.into_iter().sum::<u64>();
        }
        sum
    });
    assert_eq!(ended, Outcome::Value(50 * 190));
}

#[test]
fn dropped_in_flight_the_branches_are_dropped_and_their_operations_awaited() {
    let ended = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let count = ended.clone();
    let outcome = outcome_of(async move {
        let slow = || {
            let count = count.clone();
            never::<()>().starts_on(&executor).upon_stopped(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })
        };
        let mut both = Box::pin(join((slow(), join(vec![slow()]))));
        std::future::poll_fn(|cx| {
            assert!(both.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(both);
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(ended.load(Ordering::Relaxed), 2);
}

/// Polls a future that ends as stopped, drops it, and returns `value`: as a foreign `select!` does.
async fn swallows_a_stop<T: Copy>(value: T) -> T {
    std::future::poll_fn(|cx| {
        let mut ends: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async { stopped().await });
        assert!(ends.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(value)
    })
    .await
}

#[test]
fn a_stop_that_one_branch_has_swallowed_stops_no_sibling() {
    let waits = async |value| {
        checkpoint().await;
        value
    };
    let outcome = block_on(async { join((waits(1), swallows_a_stop(2), waits(3))).await });
    assert_eq!(outcome, Outcome::Value((1, 2, 3)));
    let outcome = block_on(async { race((waits(1), swallows_a_stop(2), waits(3))).await });
    assert_eq!(outcome, Outcome::Value(2));
}

#[test]
fn a_branch_that_is_polled_after_the_end_of_the_group_hears_of_the_stop_in_the_same_poll() {
    let outcome = block_on(async {
        let heard = Arc::new(AtomicUsize::new(0));
        let count = heard.clone();
        let clean_up = async move |_| _ = count.fetch_add(1, Ordering::Relaxed);
        let loser = ensure(clean_up, async { convoke::task::forever().await });
        let value = race((async { 1 }, loser)).await;
        (value, heard.load(Ordering::Relaxed))
    });
    assert_eq!(outcome, Outcome::Value((1, 1)));
}
