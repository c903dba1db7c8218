//! Children that are polled for the first time by the call that starts them.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::scope::scope_on;
use convoke::task::forever;

#[test]
fn an_eager_child_that_does_not_wait_has_ended_before_it_is_awaited() {
    let outcome = block_on(async {
        scope(async |s| {
            let runs = Arc::new(AtomicU32::new(0));
            let counted = runs.clone();
            let child =
                s.named("eager").spawn_future_eagerly(async move { counted.fetch_add(1, Relaxed) + 7 });
            assert_eq!(runs.load(Relaxed), 1);
            child.await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(7));
}

#[test]
fn an_eager_child_that_waits_goes_on_beside_its_parent() {
    let outcome = block_on(async {
        scope(async |s| {
            let order = Arc::new(Mutex::new(Vec::new()));
            let noted = order.clone();
            let child = s.child().spawn_future_eagerly(async move {
                noted.lock().unwrap().push("child begins");
                checkpoint().await;
                noted.lock().unwrap().push("child ends");
            });
            order.lock().unwrap().push("parent goes on");
            child.await;
            Arc::into_inner(order).unwrap().into_inner().unwrap()
        })
        .await
    });
    assert_eq!(outcome.unwrap(), ["child begins", "parent goes on", "child ends"]);
}

#[test]
fn a_panic_of_an_eager_child_is_that_of_its_handle() {
    let outcome = block_on(async {
        scope(async |s| {
            let child = s.child().spawn_future_eagerly(async { panic!("at once") });
            matches!(child.outcome().await, Outcome::<()>::Panicked(_))
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn an_eager_child_of_a_scope_that_stops_is_stopped_at_its_first_wait() {
    let outcome = block_on(async {
        scope(async |s| {
            s.request_stop(StopReason::Named("enough"));
            let child = s.child().spawn_future_eagerly(async { forever().await });
            matches!(child.outcome().await, Outcome::<()>::Stopped)
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn a_dropped_handle_asks_an_eager_child_to_stop_and_its_clean_up_runs() {
    let closed = Arc::new(AtomicU32::new(0));
    let counted = closed.clone();
    let outcome = block_on(async move {
        scope(async |s| {
            let close = async move |_| {
                counted.fetch_add(1, Relaxed);
            };
            drop(
                s.child().spawn_future_eagerly(async move { ensure(close, async { forever().await }).await }),
            );
        })
        .await
    });
    assert_eq!((outcome, closed.load(Relaxed)), (Outcome::Value(()), 1));
}

#[test]
fn on_a_pool_an_eager_child_is_queued_there() {
    let pool = ThreadPool::new(2).unwrap();
    let workers = pool.executor();
    let outcome = block_on(async move {
        let here = std::thread::current().id();
        let there = scope_on(&workers, async |s| {
            s.child().spawn_future_eagerly(async { std::thread::current().id() }).await
        });
        there.await != here
    });
    assert_eq!(outcome, Outcome::Value(true));
}

#[test]
fn eager_children_of_eager_children_end_in_order() {
    fn nested(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 0;
            }
            scope(async |s| s.child().spawn_future_eagerly(nested(depth - 1)).await + 1).await
        })
    }
    assert_eq!(block_on(async { nested(50).await }), Outcome::Value(50));
}
