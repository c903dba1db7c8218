//! Futures of other crates when a stop is requested: by default they give way, clean-up around them runs, a
//! shield keeps them, and a policy lets them run to their end.
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use convoke::env::{FOREIGN_FUTURES, ForeignFutures, with_local};
use convoke::prelude::*;
use convoke::task::{generator, stoppable};
use convoke::testing;

const SECOND: Duration = Duration::from_secs(1);

type Notes = Arc<Mutex<Vec<&'static str>>>;

fn note(notes: &Notes, what: &'static str) {
    notes.lock().unwrap().push(what);
}

/// Says when it is dropped.
struct Dropped(Notes);

impl Drop for Dropped {
    fn drop(&mut self) {
        note(&self.0, "foreign future dropped");
    }
}

/// A future that knows nothing of Convoke, and never ends.
async fn foreign(notes: &Notes) {
    let _dropped = Dropped(notes.clone());
    pending::<()>().await;
}

#[test]
fn a_timeout_around_a_foreign_future_ends_in_time() {
    testing::run(async {
        assert!(timeout(SECOND, pending::<()>()).await.is_err());
        assert!(catch_stopped(convoke::time::stop_after(SECOND, pending::<()>())).await.is_err());
    });
}

#[test]
fn clean_up_around_a_foreign_future_is_awaited_in_order() {
    let notes = Notes::default();
    testing::run({
        let notes = notes.clone();
        async move {
            let (inner, outer) = (notes.clone(), notes.clone());
            let body = ensure(
                async move |_| {
                    sleep(SECOND).await;
                    note(&outer, "outer closed");
                },
                ensure(
                    async move |_| {
                        sleep(SECOND).await;
                        note(&inner, "inner closed");
                    },
                    foreign(&notes),
                ),
            );
            assert!(timeout(SECOND, body).await.is_err());
        }
    });
    assert_eq!(*notes.lock().unwrap(), ["foreign future dropped", "inner closed", "outer closed"]);
}

#[test]
fn children_and_branches_that_wait_for_foreign_futures_are_stopped() {
    testing::run(async {
        let waits = async {
            scope(async |s| {
                s.spawn(pending::<()>());
                pending::<()>().await;
            })
            .await;
        };
        assert!(timeout(SECOND, waits).await.is_err());
        assert!(timeout(SECOND, join((pending::<()>(), pending::<()>()))).await.is_err());
        assert!(timeout(SECOND, local_scope(async |s| s.spawn(pending::<()>()))).await.is_err());
        assert_eq!(
            race((pending::<u32>(), async {
                sleep(SECOND).await;
                7
            }))
            .await,
            7
        );
    });
}

#[test]
fn a_shield_keeps_a_foreign_future() {
    testing::run(async {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = ended.clone();
        let shielded = shield(async move {
            // Wakes itself three times: a foreign future that goes on after the stop request.
            let mut turns = 0;
            poll_fn(|cx| {
                turns += 1;
                cx.waker().wake_by_ref();
                if turns > 3 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            flag.store(true, Ordering::Relaxed);
        });
        let caught = catch_stopped(timeout(Duration::ZERO, shielded)).await;
        assert!(ended.load(Ordering::Relaxed), "{caught:?}");
    });
}

#[test]
fn the_policy_lets_foreign_futures_run_to_their_end_and_is_inherited() {
    testing::run(async {
        let outcome = with_local(&FOREIGN_FUTURES, ForeignFutures::RunToEnd, async {
            scope(async |s| {
                let child = s.spawn_future(async {
                    timeout(SECOND, async {
                        let mut polls = 0;
                        // Ready at its second poll, which the stop request leads to.
                        poll_fn(|_| {
                            polls += 1;
                            if polls > 1 { Poll::Ready(polls) } else { Poll::Pending }
                        })
                        .await
                    })
                    .await
                });
                child.await
            })
            .await
        })
        .await;
        assert_eq!(outcome.ok(), Some(2), "its result is not lost");
        let stopped = with_local(&FOREIGN_FUTURES, ForeignFutures::RunToEnd, async {
            timeout(SECOND, stoppable(pending::<()>())).await.is_err()
        })
        .await;
        assert!(stopped, "`stoppable` still makes it give way");
    });
}

/// A combinator of another crate: polls only children that were woken, each with a waker of its own.
struct OnlyWoken<F> {
    children: Vec<WokenChild<F>>,
}

/// A child until it has ended, and the flag that its waker sets.
type WokenChild<F> = (Option<Pin<Box<F>>>, Arc<Flag>);

struct Flag {
    woken: AtomicBool,
    owner: Mutex<Option<Waker>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        let owner = self.owner.lock().unwrap().clone();
        if let Some(owner) = owner {
            owner.wake();
        }
    }
}

impl<F> OnlyWoken<F> {
    fn new(children: impl IntoIterator<Item = F>) -> Self {
        let flag = || Arc::new(Flag { woken: AtomicBool::new(true), owner: Mutex::new(None) });
        Self { children: children.into_iter().map(|child| (Some(Box::pin(child)), flag())).collect() }
    }
}

impl<F: Future> Future for OnlyWoken<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        for (child, flag) in &mut self.children {
            *flag.owner.lock().unwrap() = Some(cx.waker().clone());
            if flag.woken.swap(false, Ordering::Relaxed)
                && let Some(future) = child
            {
                let waker = Waker::from(flag.clone());
                if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    *child = None;
                }
            }
        }
        if self.children.iter().all(|(child, _)| child.is_none()) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn a_clean_up_behind_a_foreign_combinator_that_polls_only_woken_children_is_not_cut() {
    let closed = Arc::new(AtomicBool::new(false));
    testing::run({
        let closed = closed.clone();
        async move {
            type Child = Pin<Box<dyn Future<Output = ()> + Send>>;
            let closes: Child = Box::pin(ensure(
                async move |_| {
                    sleep(5 * SECOND).await;
                    closed.store(true, Ordering::Relaxed);
                },
                async { sleep(100 * SECOND).await },
            ));
            // Wakes the combinator while the clean-up runs, which is not polled then.
            let ticks: Child = Box::pin(shield(async {
                for _ in 0..3 {
                    sleep(SECOND).await;
                }
            }));
            let foreign: Child = Box::pin(pending());
            let together = OnlyWoken::new([closes, ticks, foreign]);
            assert!(timeout(SECOND, together).await.is_err());
        }
    });
    assert!(closed.load(Ordering::Relaxed));
}

#[test]
fn a_foreign_future_in_the_body_of_a_generator_gives_way_with_the_clean_up_around_it() {
    let notes = Notes::default();
    testing::run({
        let notes = notes.clone();
        async move {
            let consumes = async {
                let own = notes.clone();
                let mut numbers = generator(async move |y| {
                    let (closes, waits) = (own.clone(), own.clone());
                    ensure(
                        async move |_| {
                            sleep(SECOND).await;
                            note(&closes, "closed");
                        },
                        async move {
                            y.yield_value(1).await;
                            foreign(&waits).await;
                        },
                    )
                    .await;
                });
                while numbers.next().await.is_some() {}
            };
            assert!(timeout(SECOND, consumes).await.is_err());
        }
    });
    assert_eq!(*notes.lock().unwrap(), ["foreign future dropped", "closed"]);
}

#[test]
fn a_request_that_fails_because_its_driver_was_stopped_first_is_stopped() {
    testing::run(async {
        for way in ["scope", "local scope"] {
            // The driver of a connection, and a request that fails when the driver is gone, as hyper's does.
            let (alive, gone) = convoke::sync::oneshot::channel::<()>();
            let request = async move {
                let mut gone = gone;
                shield(gone.recv()).await;
                Err::<(), _>("dispatch task is gone")
            };
            let drives = async move {
                let _alive = alive;
                convoke::task::forever().await
            };
            let ended = match way {
                "scope" => {
                    timeout(SECOND, async {
                        scope(async |s| {
                            s.spawn(drives);
                            request.await
                        })
                        .await
                    })
                    .await
                }
                _ => {
                    timeout(SECOND, async {
                        local_scope(async |s| {
                            s.spawn(drives);
                            request.await
                        })
                        .await
                    })
                    .await
                }
            };
            assert!(ended.is_err(), "{way}: the timeout has elapsed, and that is what it says: {ended:?}");
        }
    });
}

#[test]
fn an_error_before_the_stop_is_not_lost() {
    testing::run(async {
        let fails = async {
            scope(async |s| {
                s.spawn(shield(async {
                    sleep(2 * SECOND).await;
                }));
                sleep(SECOND / 2).await;
                Err::<(), _>("the disk is full")
            })
            .await
        };
        assert_eq!(timeout(SECOND, fails).await.ok(), Some(Err("the disk is full")));
    });
}
