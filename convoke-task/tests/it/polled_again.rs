//! Foreign combinators poll all their futures whenever they are polled, also a stopped one that only waits for its siblings to end;
//! they poll twice, and they drop futures that they no longer need.
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{forever, stopped};
use convoke::testing::{Ended, Exploration, explore_stops_with};

struct Slow;

impl AsyncClose for Slow {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        for _ in 0..3 {
            sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }
}

/// A resource whose close never ends.
struct Stuck;

impl AsyncClose for Stuck {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        std::future::pending().await
    }
}

/// As a foreign `join!` does it: polls both every time, until both are ready.
async fn both_every_time(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (Box::pin(one), Box::pin(other));
    let mut ready = [false; 2];
    poll_fn(move |cx| {
        ready[0] = ready[0] || one.as_mut().poll(cx).is_ready();
        ready[1] = ready[1] || other.as_mut().poll(cx).is_ready();
        if ready == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future of this function is stopped at once, or when it is awaited, while its sibling still closes something.
fn beside_a_close(future: fn() -> Boxed) -> Exploration {
    explore_stops_with(|probe| {
        probe.ends_only_when_stopped();
        async move { both_every_time(future(), using(Slow, async |_slow| forever().await)).await }
    })
}

fn ends_stopped(future: fn() -> Boxed) {
    let exploration = beside_a_close(future);
    assert_eq!(exploration.ended(Ended::Stopped), exploration.runs().len(), "{exploration}");
}

#[test]
fn a_join_that_was_stopped_waits_for_its_siblings() {
    ends_stopped(|| Box::pin(async { join((never::<()>(), async { forever().await })).await.1 }));
    ends_stopped(|| Box::pin(async { drop(join(vec![never::<()>(), never()]).await) }));
}

#[test]
fn a_race_that_was_stopped_waits_for_its_siblings() {
    ends_stopped(|| Box::pin(async { race((never::<()>(), never::<()>())).await }));
}

#[test]
fn scopes_that_were_stopped_wait_for_their_siblings() {
    ends_stopped(|| Box::pin(scope(async |s| s.spawn(async { forever().await }))));
    ends_stopped(|| Box::pin(async { local_scope(async |s| s.spawn(async { never::<()>().await })).await }));
}

#[test]
fn limits_that_were_stopped_wait_for_their_siblings() {
    ends_stopped(|| Box::pin(async { timeout(Duration::MAX, never::<()>()).await.unwrap() }));
    ends_stopped(|| Box::pin(async { convoke::time::stop_after(Duration::MAX, never::<()>()).await }));
    ends_stopped(|| Box::pin(async { shield(async { stopped().await }).await }));
}

#[test]
fn handles_of_children_that_were_stopped_wait_for_their_siblings() {
    ends_stopped(|| Box::pin(scope(async |s| s.spawn_future(async { stopped().await }).await)));
    ends_stopped(|| {
        Box::pin(async { local_scope(async |s| s.spawn_future(async { stopped().await }).await).await })
    });
}

#[test]
fn what_was_dropped_while_it_closed_holds_nobody_any_more() {
    let exploration = explore_stops_with(|probe| {
        probe.ends_only_when_stopped();
        async {
            let mut closing = Box::pin(using(Stuck, async |_stuck| never::<()>().await).grace(Duration::MAX));
            let mut polls = 0;
            poll_fn(|cx| {
                assert!(closing.as_mut().poll(cx).is_pending());
                polls += 1;
                if polls == 3 {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            // As a foreign `select!` does it when another branch was ready.
            drop(closing);
            never::<()>().await
        }
    });
    assert_eq!(exploration.ended(Ended::Stopped), exploration.runs().len(), "{exploration}");
}

#[test]
fn a_shield_is_not_cut_short_by_a_sibling_that_has_stopped() {
    for with_grace in [false, true] {
        let source = StopSource::new();
        let asks = source.clone();
        let ended = Arc::new(AtomicBool::new(false));
        let ends = ended.clone();
        let shielded = shield(async move {
            asks.request_stop(StopReason::Shutdown);
            for _ in 0..3 {
                checkpoint().await;
            }
            ends.store(true, Ordering::Relaxed);
        });
        let shielded: Boxed = match with_grace {
            true => Box::pin(shielded.grace(Duration::from_secs(3600))),
            false => Box::pin(shielded),
        };
        let program = task(both_every_time(shielded, async { forever().await }));
        let outcome = sync_wait_with(Changes::new().stop_token(source.token()), program);
        assert_eq!(outcome, Outcome::Stopped);
        assert!(ended.load(Ordering::Relaxed), "it was cut short, with a grace period: {with_grace}");
    }
}
