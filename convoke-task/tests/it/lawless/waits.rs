//! Every way of waiting for something that there is, with the thing that is waited for at hand.

#![allow(dead_code, unreachable_pub)]

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, mpsc as threads};
use std::time::Duration;

use convoke::prelude::*;
use convoke::scope::policy::WaitForAll;
use convoke::scope::scope_with;
use convoke::sync::{Event, Mutex, Semaphore, lossless_broadcast, mpsc, oneshot, watch};
use convoke::task::{for_each_concurrent, generator, stoppable};
use convoke::{blocking, catch_stopped, ensure, launch, local_scope, race, run_on, shield, timeout};

pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Two futures that wait for one event, and the function that makes it happen.
pub struct Case {
    pub name: &'static str,
    pub one: Waiting,
    pub other: Waiting,
    pub fire: Box<dyn FnOnce() + Send>,
}

const LONG: Duration = Duration::from_secs(3600);

fn case(
    name: &'static str,
    one: impl Future<Output = ()> + Send + 'static,
    other: impl Future<Output = ()> + Send + 'static,
    fire: impl FnOnce() + Send + 'static,
) -> Case {
    Case { name, one: Box::pin(one), other: Box::pin(other), fire: Box::new(fire) }
}

/// Both wait for an event, the one by way of `around`.
fn by_event<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    around: impl FnOnce(Arc<Event>) -> F,
) -> Case {
    let event = Arc::new(Event::new());
    let (theirs, fires) = (event.clone(), event.clone());
    case(name, around(event), async move { theirs.wait().await }, move || fires.set())
}

/// All of them. Made in a task; `pool` is where some of what is waited for runs.
pub fn all(pool: &ThreadPool) -> Vec<Case> {
    let mut all = synchronised();
    all.extend(composed());
    let there = pool.executor();
    all.push(by_event("run_on", move |event| async move {
        run_on(&there, async move { event.wait().await }).await;
    }));
    all.push(by_event("launched", move |event| async move {
        launch(&there).start(async move { event.wait().await }).await;
    }));
    all.push(by_event("scope elsewhere", move |event| async move {
        scope(async |s| s.child().on(&there).spawn(async move { event.wait().await })).await;
    }));
    let (tell, told) = threads::channel();
    let blocked = async move {
        let _ = blocking(move |_| told.recv()).await;
    };
    all.push(case("blocking", blocked, ready(()), move || _ = tell.send(())));
    all.push(case("sleep", async { sleep(Duration::from_micros(50)).await }, ready(()), || {}));
    all
}

fn synchronised() -> Vec<Case> {
    let mut all = vec![by_event("event", |event| async move { event.wait().await })];
    let lock = Arc::new(Mutex::new(()));
    let (guard, one, other) = (lock.try_lock_owned().unwrap(), lock.clone(), lock);
    all.push(case(
        "mutex",
        async move { _ = one.lock().await },
        async move { _ = other.lock().await },
        || {
            drop(guard);
        },
    ));
    let permits = Arc::new(Semaphore::new(0));
    let (one, other) = (permits.clone(), permits.clone());
    all.push(case(
        "semaphore",
        async move { _ = one.acquire().await },
        async move { _ = other.acquire().await },
        move || permits.add_permits(2),
    ));
    let (sender, mut receiver) = oneshot::channel();
    all.push(case("oneshot", async move { _ = receiver.recv().await }, ready(()), || _ = sender.send(())));
    let (sender, mut receiver) = mpsc::channel(1);
    all.push(case("receive", async move { _ = receiver.recv().await }, ready(()), move || {
        _ = sender.try_send(());
    }));
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(()).unwrap();
    let other = sender.clone();
    all.push(case(
        "send",
        async move { _ = sender.send(()).await },
        async move { _ = other.send(()).await },
        // Closed: both fail.
        move || receiver.close(),
    ));
    let (sender, mut one) = watch::channel(0);
    let mut other = sender.subscribe();
    all.push(case(
        "watch",
        async move { _ = one.changed().await },
        async move { _ = other.changed().await },
        || {
            _ = sender.send(1);
            drop(sender);
        },
    ));
    let (sender, mut one) = lossless_broadcast::channel(1);
    let mut other = sender.subscribe();
    all.push(case(
        "broadcast",
        async move { _ = one.recv().await },
        async move { _ = other.recv().await },
        || {
            _ = sender.try_send(());
            drop(sender);
        },
    ));
    all
}

fn composed() -> Vec<Case> {
    vec![
        by_event("handle", |event| async move {
            scope(async |s| s.spawn_future(async move { event.wait().await }).await).await;
        }),
        by_event("scope", |event| async move {
            scope(async |s| s.spawn(async move { event.wait().await })).await;
        }),
        by_event("policy", |event| async move {
            let waits = async move {
                event.wait().await;
                Ok::<_, ()>(())
            };
            let _ = scope_with(WaitForAll, async |s| s.spawn(waits)).await;
        }),
        by_event("local scope", |event| async move {
            local_scope(async |s| s.spawn_future(event.wait()).await).await;
        }),
        by_event("join", |event| async move { _ = join((event.wait(), event.wait())).await }),
        by_event("race", |event| async move { _ = race((event.wait(), sleep(LONG))).await }),
        by_event("timeout", |event| async move { _ = timeout(LONG, event.wait()).await }),
        by_event("shield", |event| async move { shield(event.wait()).await }),
        by_event("catch_stopped", |event| async move { _ = catch_stopped(event.wait()).await }),
        by_event("stoppable", |event| async move { stoppable(event.wait()).await }),
        by_event("ensure", |event| async move {
            let waits = event.clone();
            ensure(async move |_| event.wait().await, async move { waits.wait().await }).await;
        }),
        by_event("generator", |event| async move {
            let mut values = generator(async move |y| {
                event.wait().await;
                y.yield_value(1).await;
            });
            while values.next().await.is_some() {}
        }),
        by_event("for_each_concurrent", |event| async move {
            let each = |_| event.wait();
            for_each_concurrent(0..3, 2, each).await;
        }),
    ]
}
