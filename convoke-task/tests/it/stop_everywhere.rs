//! A stop at every await of small programs: all branches that have begun clean up, and none is resumed after
//! its stop.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;

use crate::doors::Ledger;

const HOUR: Duration = Duration::from_secs(3600);

/// Requests a stop at one of the awaits.
#[derive(Clone)]
struct Stopper {
    source: StopSource,
    at: usize,
    awaits: Arc<AtomicUsize>,
}

impl Stopper {
    /// An await at which the stop may be requested.
    async fn tick(&self) {
        if self.awaits.fetch_add(1, Ordering::Relaxed) == self.at {
            self.source.request_stop(StopReason::Shutdown);
        }
        checkpoint().await;
    }
}

/// Runs a program once for each of its awaits, with a stop there, and at last without a stop. Returns the
/// number of awaits.
fn stop_everywhere<F, Fut>(program: F) -> usize
where
    F: Fn(Stopper, Ledger) -> Fut,
    Fut: Future<Output = &'static str> + Send,
{
    for at in 0.. {
        let stopper = Stopper { source: StopSource::new(), at, awaits: Arc::default() };
        let ledger = Ledger::default();
        let token = stopper.source.token();
        let ended =
            sync_wait_with(Changes::new().stop_token(token), task(program(stopper.clone(), ledger.clone())));
        ledger.assert_drained(&format!("stopped at {at}"));
        if stopper.awaits.load(Ordering::Relaxed) <= at {
            assert_eq!(ended, Outcome::Value("done"));
            return at;
        }
        assert_eq!(ended, Outcome::Stopped, "at {at}");
    }
    unreachable!("every program has an end")
}

#[test]
fn joins_races_and_timeouts_within_each_other() {
    let awaits = stop_everywhere(|s, ledger| async move {
        let failing = async {
            s.tick().await;
            s.tick().await;
            Err::<(), _>("failed")
        };
        let waits = || ledger.clone().waits::<Result<(), _>>();
        let failed = try_join((waits(), failing, waits())).await;
        assert_eq!(failed, Err("failed"));
        s.tick().await;
        let winner = async {
            timeout(HOUR, s.tick()).await.unwrap();
            join(vec![s.tick(), s.tick()]).await.len()
        };
        let runners: Vec<Pin<Box<dyn Future<Output = usize> + Send>>> =
            vec![Box::pin(ledger.clone().waits()), Box::pin(winner), Box::pin(ledger.clone().waits())];
        assert_eq!(timeout(HOUR, race(runners)).await, Ok(2));
        let elapsed = timeout(Duration::ZERO, ledger.waits::<()>()).await;
        assert!(elapsed.is_err());
        s.tick().await;
        "done"
    });
    assert_eq!(awaits, 7);
}

#[test]
fn local_scopes_within_each_other() {
    let awaits = stop_everywhere(|s, ledger| async move {
        let (s, ledger) = (&s, &ledger);
        let outcome = local_scope(async |outer| {
            outer.spawn(ledger.clone().waits::<()>());
            outer.spawn(async {
                local_scope(async |inner| {
                    let handle = inner.spawn_future(async {
                        s.tick().await;
                        1
                    });
                    let dropped = inner.spawn_future(ledger.clone().waits::<()>());
                    s.tick().await;
                    drop(dropped);
                    assert_eq!(handle.await, 1);
                })
                .await;
            });
            for _ in 0..6 {
                s.tick().await;
            }
            Err::<(), _>("over")
        })
        .await;
        assert_eq!(outcome, Err("over"));
        s.tick().await;
        "done"
    });
    assert_eq!(awaits, 9);
}

#[test]
fn a_shield_is_left_whole() {
    let finished = AtomicUsize::new(0);
    let awaits = stop_everywhere(|s, _| {
        let finished = &finished;
        async move {
            s.tick().await;
            shield(async {
                s.tick().await;
                s.tick().await;
                finished.fetch_add(1, Ordering::Relaxed);
            })
            .await;
            s.tick().await;
            "done"
        }
    });
    assert_eq!(awaits, 4);
    // In all runs, except for the one that was stopped before the shield.
    assert_eq!(finished.load(Ordering::Relaxed), awaits);
}

/// A foreign combinator: it polls its future with a waker of its own, and only when that was woken.
struct Foreign<F> {
    inner: Pin<Box<F>>,
    flag: Arc<ForeignFlag>,
}

struct ForeignFlag {
    woken: AtomicBool,
    outer: std::sync::Mutex<Option<Waker>>,
}

impl Wake for ForeignFlag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let outer = self.outer.lock().unwrap().clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

fn foreign<F: Future>(future: F) -> Foreign<F> {
    let flag = ForeignFlag { woken: AtomicBool::new(true), outer: std::sync::Mutex::new(None) };
    Foreign { inner: Box::pin(future), flag: Arc::new(flag) }
}

impl<F: Future> Future for Foreign<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        *self.flag.outer.lock().unwrap() = Some(cx.waker().clone());
        if !self.flag.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.flag.clone());
        self.inner.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[test]
fn stops_find_their_way_through_combinators_that_poll_only_what_was_woken() {
    let awaits = stop_everywhere(|s, ledger| async move {
        let failing = async {
            s.tick().await;
            s.tick().await;
            Err::<(), _>("failed")
        };
        let far = foreign(timeout(HOUR, foreign(ledger.clone().waits::<Result<(), &'static str>>())));
        type Branch<'a> = Pin<Box<dyn Future<Output = Result<(), &'static str>> + Send + 'a>>;
        let branches: Vec<Branch<'_>> = vec![
            Box::pin(foreign(async { far.await.unwrap() })),
            Box::pin(foreign(failing)),
            Box::pin(foreign(async {
                join((foreign(ledger.clone().waits::<()>()), async {})).await;
                Ok(())
            })),
        ];
        assert_eq!(foreign(try_join(branches)).await.map(drop), Err("failed"));
        foreign(local_scope(async |scope| {
            let handle = scope.spawn_future(foreign(ledger.clone().waits::<()>()));
            foreign(s.tick()).await;
            drop(handle);
        }))
        .await;
        "done"
    });
    assert_eq!(awaits, 3);
}
