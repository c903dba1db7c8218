//! Scopes: no child outlives its scope, and no result is lost.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::env::Changes;
use convoke::executor::BlockOn;
use convoke::prelude::*;
use convoke::scope::BodyOutput;
use convoke::sender::prelude::*;
use convoke::task::{forever, stopped};

/// Adds one to the counter when it is dropped.
struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counter() -> (Arc<AtomicUsize>, impl Fn() -> Leaves + Clone) {
    let count = Arc::new(AtomicUsize::new(0));
    let made = count.clone();
    (count, move || Leaves(made.clone()))
}

#[test]
fn a_scope_returns_what_its_body_returns() {
    assert_eq!(sync_wait(task(async { scope(async |_| 7).await })), Outcome::Value(7));
}

#[test]
fn a_scope_ends_when_all_its_children_have_ended() {
    const MANY: usize = if cfg!(miri) { 10 } else { 100 };
    let (count, leaves) = counter();
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            for _ in 0..MANY {
                let leaves = leaves();
                s.spawn(async move {
                    checkpoint().await;
                    drop(leaves);
                });
            }
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(count.load(Ordering::Relaxed), MANY);
}

#[test]
fn children_run_in_parallel_on_a_pool() {
    const CHILDREN: u64 = if cfg!(miri) { 10 } else { 50 };
    let pool = ThreadPool::new(2).unwrap();
    for _ in 0..if cfg!(miri) { 1 } else { 100 } {
        let outcome = sync_wait(
            task(async {
                scope(async |s| {
                    let handles: Vec<_> = (0..CHILDREN)
                        .map(|n| {
                            s.spawn_future(async move {
                                checkpoint().await;
                                n
                            })
                        })
                        .collect();
                    let mut sum = 0;
                    for handle in handles {
                        sum += handle.await;
                    }
                    sum
                })
                .await
            })
            .starts_on(&pool.executor()),
        );
        assert_eq!(outcome, Outcome::Value(CHILDREN * (CHILDREN - 1) / 2));
    }
}

#[test]
fn the_first_child_to_fail_stops_the_others_and_its_error_is_the_outcome() {
    let (count, leaves) = counter();
    let outcome: Outcome<Result<(), &str>> = sync_wait(task(async move {
        scope(async |s| {
            for _ in 0..10 {
                let leaves = leaves();
                s.spawn(async move {
                    let _leaves = leaves;
                    never::<()>().await;
                });
            }
            s.spawn(async {
                checkpoint().await;
                Err("first")
            });
            forever().await
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(Err("first")));
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

#[test]
fn an_error_of_the_body_stops_the_children() {
    let (count, leaves) = counter();
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            let leaves = leaves();
            s.spawn(async move {
                let _leaves = leaves;
                never::<()>().await;
            });
            checkpoint().await;
            Err::<(), _>("body")
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(Err("body")));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn none_from_the_body_stops_the_children() {
    let (count, leaves) = counter();
    let outcome: Outcome<Option<u32>> = sync_wait(task(async move {
        scope(async |s| {
            let leaves = leaves();
            s.spawn(async move {
                let _leaves = leaves;
                never::<()>().await;
            });
            checkpoint().await;
            let missing: Option<u32> = None;
            Some(missing? + 1)
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(None));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
#[should_panic(expected = "`unlucky`")]
fn a_panic_of_a_child_goes_on_at_the_scope_with_its_name() {
    let _ = sync_wait(task(async {
        scope(async |s| {
            s.named("unlucky").spawn(async { panic!("boom") });
            never::<()>().await
        })
        .await
    }));
}

#[test]
fn a_stop_from_above_unwinds_body_and_children() {
    let source = StopSource::new();
    let (count, leaves) = counter();
    let outcome = sync_wait_with(
        Changes::new().stop_token(source.token()),
        task(async move {
            scope(async |s| {
                for _ in 0..10 {
                    let (s2, leaves) = (s.clone(), leaves.clone());
                    s.spawn(async move {
                        let (_one, other) = (leaves(), leaves());
                        s2.spawn(async move {
                            let _other = other;
                            never::<()>().await;
                        });
                        scope(async |s3| {
                            let inner = leaves();
                            s3.spawn(async move {
                                let _inner = inner;
                                never::<()>().await
                            });
                            never::<()>().await
                        })
                        .await
                    });
                }
                for _ in 0..5 {
                    checkpoint().await;
                }
                source.request_stop(StopReason::Shutdown);
                never::<()>().await
            })
            .await
        }),
    );
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(count.load(Ordering::Relaxed), 30);
}

#[test]
fn dropping_a_handle_asks_the_child_to_stop() {
    let (count, leaves) = counter();
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            let leaves = leaves();
            let handle = s.spawn_future(async move {
                let _leaves = leaves;
                never::<u32>().await
            });
            checkpoint().await;
            drop(handle);
            "went on"
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value("went on"));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn a_child_that_is_stopped_stops_the_task_that_awaits_its_handle() {
    let outcome =
        sync_wait(task(
            async move { scope(async |s| s.spawn_future(async { stopped().await }).await).await },
        ));
    assert_eq!(outcome, Outcome::Stopped);
}

#[test]
fn local_children_need_not_be_send() {
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            s.child().local().spawn(async {
                let shared = Rc::new(1);
                checkpoint().await;
                assert_eq!(*shared, 1);
            });
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
#[should_panic(expected = "needs a scope whose executor has one thread")]
fn local_children_are_refused_on_a_pool() {
    let pool = ThreadPool::new(1).unwrap();
    let _ = sync_wait(
        task(async move { scope(async |s| s.child().local().spawn(async {})).await })
            .starts_on(&pool.executor()),
    );
}

#[test]
fn children_run_on_other_executors_and_the_scope_waits_for_them() {
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let (count, leaves) = counter();
        let outcome = sync_wait(task(async move {
            let here = std::thread::current().id();
            scope(async |s| {
                for _ in 0..10 {
                    let leaves = leaves();
                    s.child().on(&executor).spawn(async move {
                        checkpoint().await;
                        assert_ne!(std::thread::current().id(), here);
                        drop(leaves);
                    });
                }
            })
            .await;
            assert_eq!(std::thread::current().id(), here);
        }));
        assert_eq!(outcome, Outcome::Value(()));
        assert_eq!(count.load(Ordering::Relaxed), 10);
    }
}

#[test]
fn a_scope_that_is_dropped_is_waited_for_by_its_task() {
    let (count, leaves) = counter();
    let pool = ThreadPool::new(2).unwrap();
    let executor = pool.executor();
    let outcome = sync_wait(task(async move {
        let mut opened = Box::pin(scope(async |s| {
            for _ in 0..10 {
                let leaves = leaves();
                s.child().on(&executor).spawn(async move {
                    let _leaves = leaves;
                    never::<()>().await;
                });
            }
            never::<()>().await
        }));
        std::future::poll_fn(|cx| {
            assert!(opened.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(opened);
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

#[test]
fn a_scope_that_outlives_its_future_starts_nothing() {
    let outcome = sync_wait(task(async move {
        let kept = scope(async |s: convoke::Scope<_>| KeptScope(s)).await;
        kept.0.child().try_spawn(async {}).is_err_and(|error| error.is_ended())
    }));
    assert_eq!(outcome, Outcome::Value(true));
}

struct KeptScope(convoke::Scope<KeptScope>);

impl BodyOutput for KeptScope {}

use std::future::Future;

/// Runs a program, and requests a stop when its body has returned and its children still run.
fn stopped_late<P>(program: P) -> Outcome<P::Output>
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let source = StopSource::new();
    let asks = source.clone();
    let both = async move {
        let asking = async move {
            checkpoint().await;
            checkpoint().await;
            asks.request_stop(StopReason::Shutdown);
        };
        join((shield(asking), program)).await.1
    };
    sync_wait_with(Changes::new().stop_token(source.token()), task(both))
}

#[test]
fn a_value_that_counts_on_children_which_were_stopped_is_not_returned() {
    let outcome = stopped_late(async {
        scope(async |s| {
            s.spawn(async { never::<()>().await });
            "all is done"
        })
        .await
    });
    assert_eq!(outcome, Outcome::Stopped);
    let outcome = stopped_late(async {
        local_scope(async |s| {
            s.spawn(async { never::<()>().await });
            "all is done"
        })
        .await
    });
    assert_eq!(outcome, Outcome::Stopped);
}

#[test]
fn a_timeout_does_not_pass_on_what_was_half_done() {
    let outcome = sync_wait(task(async {
        let half_done = scope(async |s| {
            s.spawn(async { never::<()>().await });
            "all is done"
        });
        timeout(std::time::Duration::from_millis(1), half_done).await.is_err()
    }));
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn children_that_stop_by_themselves_or_were_asked_to_leave_the_value_alone() {
    let outcome = sync_wait(task(async {
        scope(async |s| {
            s.spawn(async { stopped().await });
            drop(s.spawn_future(async { never::<()>().await }));
            s.spawn(async { never::<()>().await });
            s.request_stop(StopReason::Named("enough"));
            "all is done"
        })
        .await
    }));
    assert_eq!(outcome, Outcome::Value("all is done"));
}

#[test]
fn a_handle_on_the_owner_thread_may_be_dropped_at_any_time() {
    let (count, leaves) = counter();
    let run_loop = convoke::executor::RunLoop::new();
    let kept = Rc::new(std::cell::RefCell::new(Vec::new()));
    let keep = kept.clone();
    let outcome = run_loop.block_on(async move {
        scope(async |s| {
            for n in 0..4 {
                let leaves = leaves();
                let handle = s.child().local().spawn_future(async move {
                    let _leaves = leaves;
                    checkpoint().await;
                    Rc::new(n)
                });
                match n {
                    0 => assert_eq!(*handle.await, 0),
                    1 => drop(handle),
                    2 => {
                        checkpoint().await;
                        checkpoint().await;
                        checkpoint().await;
                        drop(handle);
                    }
                    // Dropped after the run loop and the child have ended.
                    _ => keep.borrow_mut().push(handle),
                }
            }
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(count.load(Ordering::Relaxed), 4);
    kept.borrow_mut().clear();
    drop(run_loop);
}

#[test]
fn a_handle_on_the_owner_thread_may_outlive_its_loop() {
    let run_loop = convoke::executor::RunLoop::new();
    let kept = Rc::new(std::cell::RefCell::new(None));
    let keep = kept.clone();
    let outcome = run_loop.block_on(async move {
        scope(async |s| {
            let handle = s.child().local().spawn_future(async {
                // A waker that is stored elsewhere: the handle has not the last reference to the child when
                // that ends.
                std::future::poll_fn(|cx| std::task::Poll::Ready(cx.waker().clone())).await
            });
            checkpoint().await;
            checkpoint().await;
            *keep.borrow_mut() = Some(handle);
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(()));
    drop(run_loop);
    drop(kept.borrow_mut().take());
}
