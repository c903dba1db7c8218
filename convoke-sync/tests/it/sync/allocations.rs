//! Once they are in use, channels and notifications do not allocate.

use convoke::sync::{Notify, broadcast, lossless_broadcast, mpmc, mpsc, watch};
use convoke_testing::workshop::counting::allocations;

use crate::sync::streams::next;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls a future once. It need not be ready.
fn poll<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Asserts that a round allocates nothing after the first few.
#[track_caller]
fn allocates_nothing(mut round: impl FnMut()) {
    (0..5).for_each(|_| round());
    assert_eq!(allocations(|| (0..100).for_each(|_| round())), 0);
}

#[test]
fn messages_allocate_nothing() {
    let (sender, mut receiver) = mpsc::channel(2);
    allocates_nothing(|| {
        poll(sender.send(1)).unwrap().unwrap();
        sender.try_reserve().unwrap().send(2);
        assert!(poll(sender.reserve()).is_none());
        assert_eq!((poll(receiver.recv()), poll(receiver.recv())), (Some(Some(1)), Some(Some(2))));
        assert_eq!(poll(receiver.recv()), None);
    });
}

#[test]
fn streams_allocate_nothing_after_the_first_poll() {
    let (sender, mut receiver) = mpmc::channel(2);
    allocates_nothing(|| {
        assert_eq!(poll(next(&mut receiver)), None);
        sender.try_send(1).unwrap();
        assert_eq!(poll(next(&mut receiver)), Some(Some(1)));
    });
    let (sender, mut receiver) = watch::channel(0);
    poll(next(&mut receiver));
    allocates_nothing(|| {
        assert_eq!(poll(next(&mut receiver)), None);
        sender.send(1).unwrap();
        assert_eq!(poll(next(&mut receiver)), Some(Some(1)));
    });
}

#[test]
fn broadcasts_allocate_nothing() {
    let (sender, mut one) = broadcast::channel(2);
    let mut slow = sender.subscribe();
    allocates_nothing(|| {
        for n in 0..3 {
            sender.send(n).unwrap();
            assert_eq!(poll(one.recv()), Some(Ok(n)));
        }
        _ = poll(slow.recv());
    });
    let (sender, mut one) = lossless_broadcast::channel(2);
    let mut other = sender.subscribe();
    allocates_nothing(|| {
        poll(sender.send(1)).unwrap().unwrap();
        assert_eq!((poll(one.recv()), poll(other.recv())), (Some(Some(1)), Some(Some(1))));
    });
}

#[test]
fn notifications_allocate_nothing() {
    let notify = Notify::new();
    allocates_nothing(|| {
        assert_eq!(poll(notify.notified()), None);
        notify.notify_one();
        assert_eq!(poll(notify.notified()), Some(()));
        notify.notify_waiters();
    });
}

#[test]
fn a_blocked_thread_allocates_nothing() {
    let (sender, mut receiver) = mpsc::channel(1);
    allocates_nothing(|| {
        sender.blocking_send(1).unwrap();
        assert_eq!(receiver.blocking_recv(), Some(1));
    });
}
