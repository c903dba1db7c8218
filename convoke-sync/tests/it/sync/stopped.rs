//! Every awaited call completes as stopped if a stop was requested, even if it would not have to wait.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;

use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{
    Barrier, Event, Mutex, Notify, OnceCell, RwLock, Semaphore, broadcast, lossless_broadcast, mpmc, mpsc,
    oneshot, watch,
};
use convoke::task::forever;

use crate::sync::streams::next;

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

fn call(future: impl Future<Output = ()> + Send + 'static) -> Call {
    Box::pin(future)
}

/// Calls that would all be ready at once.
fn calls() -> Vec<(&'static str, Call)> {
    vec![
        ("semaphore", call(async { drop(Semaphore::new(1).acquire().await) })),
        ("mutex", call(async { drop(Mutex::new(1).lock().await) })),
        ("read", call(async { drop(RwLock::new(1).read().await) })),
        ("write", call(async { drop(RwLock::new(1).write().await) })),
        ("barrier", call(async { _ = Barrier::new(1).wait().await })),
        (
            "event",
            call(async {
                let event = Event::new();
                event.set();
                event.wait().await;
            }),
        ),
        (
            "once cell",
            call(async {
                let cell = OnceCell::new();
                cell.set(1).unwrap();
                cell.get_or_init(|| async { 2 }).await;
            }),
        ),
        (
            "wait for a once cell",
            call(async {
                let cell = OnceCell::new();
                cell.set(1).unwrap();
                cell.wait().await;
            }),
        ),
        (
            "send",
            call(async {
                let (sender, _receiver) = mpsc::channel(1);
                sender.send(1).await.unwrap();
            }),
        ),
        (
            "recv",
            call(async {
                let (sender, receiver) = mpmc::channel(1);
                sender.try_send(1).unwrap();
                receiver.recv().await;
            }),
        ),
        (
            "oneshot",
            call(async {
                let (sender, mut receiver) = oneshot::channel();
                sender.send(1).unwrap();
                receiver.recv().await;
            }),
        ),
        (
            "watch",
            call(async {
                let (sender, mut receiver) = watch::channel(1);
                sender.send(2).unwrap();
                receiver.changed().await.unwrap();
            }),
        ),
        (
            "oneshot receiver",
            call(async {
                let (sender, receiver) = oneshot::channel();
                sender.send(1).unwrap();
                receiver.await.unwrap();
            }),
        ),
        (
            "reserve",
            call(async {
                let (sender, _receiver) = mpsc::channel(1);
                sender.reserve().await.unwrap().send(1);
            }),
        ),
        (
            "notify",
            call(async {
                let notify = Notify::new();
                notify.notify_one();
                notify.notified().await;
            }),
        ),
        (
            "wait for a watched value",
            call(async {
                let (_sender, mut receiver) = watch::channel(1);
                drop(receiver.wait_for(|value| *value == 1).await.unwrap());
            }),
        ),
        (
            "stream",
            call(async {
                let (sender, mut receiver) = mpsc::channel(1);
                sender.try_send(1).unwrap();
                next(&mut receiver).await.unwrap();
            }),
        ),
        (
            "stream of a watch",
            call(async {
                let (_sender, mut receiver) = watch::channel(1);
                next(&mut receiver).await.unwrap();
            }),
        ),
        (
            "lagging broadcast recv",
            call(async {
                let (sender, mut receiver) = broadcast::channel(1);
                sender.send(2).unwrap();
                receiver.recv().await.unwrap();
            }),
        ),
        (
            "broadcast send",
            call(async {
                let (sender, _receiver) = lossless_broadcast::channel(1);
                sender.send(2).await.unwrap();
            }),
        ),
        (
            "broadcast recv",
            call(async {
                let (sender, mut receiver) = lossless_broadcast::channel(1);
                sender.try_send(2).unwrap();
                receiver.recv().await;
            }),
        ),
    ]
}

#[test]
fn without_a_stop_none_of_the_calls_waits() {
    for (name, call) in calls() {
        assert_eq!(sync_wait(task(call)), Outcome::Value(()), "{name}");
    }
}

#[test]
fn a_call_that_would_not_wait_honours_a_stop_requested_in_the_same_poll() {
    for (name, call) in calls() {
        let source = StopSource::new();
        let token = source.token();
        let program = task(async move {
            source.request_stop(StopReason::Requested);
            call.await;
            unreachable!("{name} must be stopped");
        });
        assert_eq!(
            sync_wait_with(Changes::new().stop_token(token), program),
            Outcome::<()>::Stopped,
            "{name}"
        );
    }
}

#[test]
fn a_shielded_call_is_not_stopped() {
    for (name, call) in calls() {
        let source = StopSource::new();
        let token = source.token();
        let program = task(async move {
            source.request_stop(StopReason::Requested);
            shield(call).await;
        });
        assert_eq!(sync_wait_with(Changes::new().stop_token(token), program), Outcome::Value(()), "{name}");
    }
}

#[test]
fn a_loop_of_calls_that_never_wait_is_stopped_from_another_thread() {
    let source = StopSource::new();
    let token = source.token();
    let (begun, begins) = std::sync::mpsc::channel();
    let asks = std::thread::spawn(move || {
        begins.recv().unwrap();
        source.request_stop(StopReason::Requested);
    });
    let program = task(async move {
        let mutex = Mutex::new(0);
        begun.send(()).unwrap();
        loop {
            *mutex.lock().await += 1;
        }
    });
    assert_eq!(sync_wait_with(Changes::new().stop_token(token), program), Outcome::<()>::Stopped);
    asks.join().unwrap();
}

#[test]
fn a_stopped_wait_passes_its_grant_on_at_once_to_clean_up_that_needs_it() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.try_lock_owned().unwrap();
    let source = StopSource::new();
    let token = source.token();
    let (waits, cleans) = (mutex.clone(), mutex.clone());
    let program = task(async move {
        // It is granted the lock, and stopped before it is polled again. It is dropped only after the
        // other has cleaned up.
        let mut waits = pin!(waits.lock());
        let mut cleans = pin!(ensure(async move |_| *cleans.lock().await += 1, async move {
            checkpoint().await;
            drop(held);
            source.request_stop(StopReason::Requested);
            forever().await
        }));
        // A `join!` of another library has no frames for its branches.
        poll_fn(|cx| {
            let _ = waits.as_mut().poll(cx);
            cleans.as_mut().poll(cx)
        })
        .await
    });
    assert_eq!(sync_wait_with(Changes::new().stop_token(token), program), Outcome::<()>::Stopped);
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}
