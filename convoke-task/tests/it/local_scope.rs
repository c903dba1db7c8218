//! `local_scope`: children that borrow, inside one task.
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::scope::{LocalScope, local_scope_not_send};
use convoke::sender::prelude::*;
use convoke::task::stopped;

use crate::doors::{Door, Ledger, assert_same, outcome_of};

#[test]
fn children_borrow_from_around_and_run_on_a_pool_with_their_task() {
    let pool = ThreadPool::new(2).unwrap();
    let outcome = sync_wait(
        task(async {
            let numbers = vec![1, 2, 3, 4];
            let mut sums = [0; 4];
            local_scope(async |s| {
                for (sum, number) in sums.iter_mut().zip(&numbers) {
                    s.spawn(async move {
                        for n in 1..=*number {
                            checkpoint().await;
                            *sum += n;
                        }
                    });
                }
            })
            .await;
            sums
        })
        .starts_on(&pool.executor()),
    );
    assert_eq!(outcome, Outcome::Value([1, 3, 6, 10]));
}

#[test]
fn handles_bring_what_children_return_also_borrows() {
    let outcome = outcome_of(async {
        let text = String::from("some words");
        let length = local_scope(async |s| {
            let first = s.spawn_future(async {
                checkpoint().await;
                text.split(' ').next().unwrap()
            });
            let failed = s.named("fails").spawn_future(async { Err::<(), _>("the handle's") });
            assert_eq!(failed.await, Err("the handle's"));
            first.await.len()
        })
        .await;
        (length, text)
    });
    assert_eq!(outcome, Outcome::Value((4, "some words".to_owned())));
}

#[test]
fn the_first_to_fail_stops_the_others_wherever_it_is() {
    for door in [Door::Error, Door::Panic] {
        for index in 0..4 {
            for turns in 0..if cfg!(miri) { 1 } else { 3 } {
                let story = format!("{door:?} at {index} after {turns}");
                let ledger = Ledger::default();
                let waits = ledger.clone();
                let ended = outcome_of(async {
                    let borrowed = &waits;
                    local_scope(async |s| {
                        for n in 0..3 {
                            if n == index {
                                s.named("bad").spawn(async move {
                                    crate::doors::ends_by(door, turns, index).await.map(drop)
                                });
                            } else {
                                s.spawn(async move { borrowed.clone().waits::<()>().await });
                            }
                        }
                        // The body fails like a child.
                        if index == 3 {
                            crate::doors::ends_by(door, turns, index).await.map(drop)
                        } else {
                            waits.clone().waits().await
                        }
                    })
                    .await
                });
                let expected = match (door, index) {
                    (Door::Error, _) => Outcome::Value(Err(format!("error {index}"))),
                    (_, 3) => Outcome::Panicked(Panic::new("panic 3")),
                    _ => Outcome::Panicked(Panic::new(format!("the child `bad` panicked: panic {index}"))),
                };
                assert_same(ended, &expected, &story);
                ledger.assert_drained(&story);
                ledger.assert_reasons(StopReason::Sibling);
                assert_eq!(ledger.begun(), 3, "{story}");
            }
        }
    }
}

#[test]
fn none_from_the_body_stops_the_children() {
    let ledger = Ledger::default();
    let ended = outcome_of(async {
        local_scope(async |s| {
            s.spawn(async { ledger.clone().waits::<()>().await });
            checkpoint().await;
            let missing: Option<u32> = None;
            Some(missing? + 1)
        })
        .await
    });
    assert_eq!(ended, Outcome::Value(None));
    ledger.assert_drained("`None` from the body");
    ledger.assert_reasons(StopReason::Sibling);
}

#[test]
fn a_nameless_child_is_known_by_where_it_was_started() {
    let line = line!() + 2;
    let ended = outcome_of(async {
        local_scope(async |s| s.spawn(async { panic!("oh") })).await;
    });
    let Outcome::Panicked(panic) = ended else { panic!("the panic goes on") };
    assert!(panic.message().contains(&format!("local_scope.rs:{line}:")), "{}", panic.message());
    assert!(panic.message().ends_with("panicked: oh"), "{}", panic.message());
}

#[test]
fn a_child_that_stops_is_gone_and_a_body_that_stops_stops_all() {
    let ended = outcome_of(async {
        local_scope(async |s| {
            s.spawn(async { stopped().await });
            checkpoint().await;
            checkpoint().await;
            5
        })
        .await
    });
    assert_eq!(ended, Outcome::Value(5));
    let ledger = Ledger::default();
    let waits = ledger.clone();
    let ended = outcome_of(async {
        local_scope(async |s| {
            s.spawn(async { waits.clone().waits::<()>().await });
            checkpoint().await;
            checkpoint().await;
            stopped().await
        })
        .await
    });
    assert_eq!(ended, Outcome::Stopped);
    assert_eq!(ledger.begun(), 1);
    ledger.assert_drained("with the body");
}

#[test]
fn the_body_returns_and_children_still_end() {
    let ended = outcome_of(async {
        let count = AtomicUsize::new(0);
        let value = local_scope(async |s| {
            for n in 0..5 {
                let count = &count;
                s.spawn(async move {
                    for _ in 0..n {
                        checkpoint().await;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
            "body"
        })
        .await;
        (value, count.into_inner())
    });
    assert_eq!(ended, Outcome::Value(("body", 5)));
}

#[test]
fn children_start_others_also_while_the_scope_drains() {
    let count = AtomicUsize::new(0);
    type Boxed<'env> = Pin<Box<dyn Future<Output = ()> + Send + 'env>>;
    fn tree<'env>(
        s: LocalScope<'env, Result<(), &'static str>>,
        depth: u32,
        count: &'env AtomicUsize,
    ) -> Boxed<'env> {
        Box::pin(async move {
            count.fetch_add(1, Ordering::Relaxed);
            for _ in 0..(if depth > 0 { 2 } else { 0 }) {
                s.spawn(tree(s.clone(), depth - 1, count));
            }
        })
    }
    let ended = outcome_of(async {
        local_scope(async |s| {
            let (again, count) = (s.clone(), &count);
            s.spawn(async move {
                let _ = catch_stopped(async { never::<()>().await }).await;
                again.spawn(tree(again.clone(), 3, count));
            });
            checkpoint().await;
            Err("over")
        })
        .await
    });
    assert_eq!(ended, Outcome::Value(Err("over")));
    assert_eq!(count.load(Ordering::Relaxed), 15);
}

#[test]
fn a_dropped_handle_asks_its_child_to_stop_and_the_scope_awaits_it() {
    let ledger = Ledger::default();
    let waits = ledger.clone();
    let ended = outcome_of(async {
        local_scope(async |s| {
            let handle = s.spawn_future(async { waits.clone().waits::<u8>().await });
            checkpoint().await;
            drop(handle);
            let other = s.spawn_future(async { waits.clone().waits::<u8>().await });
            checkpoint().await;
            other.request_stop(StopReason::Abandoned);
            catch_stopped(other).await.is_err()
        })
        .await
    });
    assert_eq!(ended, Outcome::Value(true));
    assert_eq!(ledger.begun(), 2);
    ledger.assert_drained("handles");
    ledger.assert_reasons(StopReason::Abandoned);
}

#[test]
fn a_panic_goes_to_the_handle_or_if_that_is_gone_to_the_scope() {
    let ended = outcome_of(async {
        local_scope(async |s| {
            let handle = s.named("kept").spawn_future(async { panic!("oh") });
            handle.await
        })
        .await
    });
    assert_same(ended, &Outcome::<()>::Panicked(Panic::new("the child `kept` panicked: oh")), "kept");
    let ended = outcome_of(async {
        local_scope(async |s| {
            drop(s.named("gone").spawn_future(async { panic!("oh") }));
        })
        .await
    });
    assert_same(ended, &Outcome::Panicked(Panic::new("the child `gone` panicked: oh")), "gone");
}

#[test]
fn a_stop_from_around_reaches_body_and_children_at_every_await() {
    for after in 0..8 {
        let ledger = Ledger::default();
        let waits = ledger.clone();
        let source = StopSource::new();
        let asks = source.clone();
        let program = task(async {
            local_scope(async |s| {
                s.spawn(async { waits.clone().waits::<()>().await });
                s.spawn(async {
                    local_scope(async |inner| {
                        inner.spawn(async { waits.clone().waits::<()>().await });
                        join((sleep(std::time::Duration::from_secs(3600)), waits.clone().waits::<()>()))
                            .await;
                    })
                    .await;
                });
                for _ in 0..after {
                    checkpoint().await;
                }
                asks.request_stop(StopReason::Shutdown);
                checkpoint().await;
                unreachable!("not resumed");
            })
            .await
        });
        let ended: Outcome<()> = sync_wait_with(Changes::new().stop_token(source.token()), program);
        assert_eq!(ended, Outcome::Stopped);
        ledger.assert_drained("from around");
        ledger.assert_reasons(StopReason::Shutdown);
    }
}

#[test]
fn a_scope_that_is_dropped_drops_its_children_also_those_that_hold_it() {
    let alive = Arc::new(());
    let ended = outcome_of(async {
        let borrowed = &alive;
        let mut scope = Box::pin(local_scope(async |s| {
            for _ in 0..3 {
                let (keep, own) = (s.clone(), borrowed.clone());
                s.spawn(async move {
                    never::<()>().await;
                    drop((keep, own));
                });
            }
            never::<()>().await
        }));
        for polled in [false, true] {
            if polled {
                std::future::poll_fn(|cx| {
                    assert!(scope.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                assert_eq!(Arc::strong_count(borrowed), 4);
            }
        }
        drop(scope);
        Arc::strong_count(borrowed)
    });
    assert_eq!(ended, Outcome::Value(1));
}

#[test]
fn children_that_wait_in_the_inbox_are_dropped_with_the_scope() {
    let alive = Arc::new(());
    let kept = alive.clone();
    // Started before the first poll: the closure is called at once.
    let scope = local_scope(move |s: LocalScope<'_, ()>| {
        let keep = s.clone();
        s.spawn(async move { drop((keep, kept)) });
        async {}
    });
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(scope);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
#[should_panic(expected = "the scope has ended")]
fn nothing_is_started_in_a_scope_that_has_ended() {
    sync_wait(task(async {
        let slot = std::sync::Mutex::new(None);
        local_scope(async |s: LocalScope<'_, ()>| *slot.lock().unwrap() = Some(s)).await;
        slot.into_inner().unwrap().unwrap().spawn(async {});
    }))
    .unwrap();
}

#[test]
fn only_the_woken_are_polled() {
    const CHILDREN: usize = if cfg!(miri) { 4 } else { 50 };
    let polls = AtomicUsize::new(0);
    let ended = outcome_of(async {
        local_scope(async |s| {
            for _ in 0..CHILDREN {
                // Wakes itself and ends: the next child, with the same index, must not be woken by that.
                s.spawn(std::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    Poll::Ready(())
                }));
                checkpoint().await;
                let mut waits = never::<()>().into_awaited();
                let polls = &polls;
                s.spawn(std::future::poll_fn(move |cx| {
                    polls.fetch_add(1, Ordering::Relaxed);
                    Pin::new(&mut waits).poll(cx)
                }));
                for _ in 0..10 {
                    checkpoint().await;
                }
            }
            assert_eq!(polls.load(Ordering::Relaxed), CHILDREN);
            stopped().await
        })
        .await
    });
    assert_eq!(ended, Outcome::Stopped);
}

#[test]
fn children_that_are_not_send_run_in_a_task_that_is_not() {
    let ended = outcome_of(async {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = seen.clone();
        scope(async |s| {
            s.child().local().spawn(async move {
                let sum = Cell::new(0);
                local_scope_not_send(async |s| {
                    for n in 1..=3 {
                        let (sum, shared) = (&sum, Rc::new(n));
                        let handle = s.named("adds").spawn_future(async move {
                            checkpoint().await;
                            sum.set(sum.get() + *shared);
                            shared
                        });
                        s.spawn(async move { assert_eq!(*handle.await, n) });
                    }
                })
                .await;
                count.store(sum.get(), Ordering::Relaxed);
            });
        })
        .await;
        seen.load(Ordering::Relaxed)
    });
    assert_eq!(ended, Outcome::Value(6));
}

#[test]
fn a_checkpoint_gives_every_other_child_one_turn() {
    let log = std::sync::Mutex::new(Vec::new());
    let ended = outcome_of(async {
        let turns = async |who: char| {
            for _ in 0..20 {
                log.lock().unwrap().push(who);
                checkpoint().await;
            }
        };
        local_scope(async |s| {
            let turns = &turns;
            // Earlier children had their indexes, and were woken when they ended.
            for _ in 0..2 {
                s.spawn(std::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    Poll::Ready(())
                }));
            }
            checkpoint().await;
            s.spawn(turns('a'));
            s.spawn(turns('b'));
            turns('c').await;
        })
        .await;
    });
    assert_eq!(ended, Outcome::Value(()));
    for round in log.into_inner().unwrap().chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, ['a', 'b', 'c']);
    }
}
