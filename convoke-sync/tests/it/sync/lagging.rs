//! Tests of the broadcast that drops messages for slow receivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::sync::broadcast::{self, RecvError, TryRecvError};
use convoke::sync::channel::SendError;

use crate::sync::polled::{ready, waits};

#[test]
fn a_slow_receiver_misses_the_oldest_messages_and_learns_how_many() {
    let (sender, mut fast) = broadcast::channel(2);
    let mut slow = sender.subscribe();
    for n in 0..5 {
        assert_eq!(sender.send(n), Ok(2));
        assert_eq!(ready(fast.recv()), Ok(n));
    }
    assert_eq!((slow.len(), slow.capacity()), (5, 2));
    assert_eq!(ready(slow.recv()), Err(RecvError::Lagged(3)));
    assert_eq!((ready(slow.recv()), slow.try_recv()), (Ok(3), Ok(4)));
    assert_eq!(slow.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(ready(slow.recv()), Err(RecvError::Closed));
    assert_eq!(slow.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn all_waiting_receivers_are_woken() {
    let (sender, mut one) = broadcast::channel(1);
    let mut other = one.clone();
    let (mut first, mut second) = (waits(one.recv()), waits(other.recv()));
    sender.send(7).unwrap();
    assert_eq!((first.poll(), second.poll()), (Some(Ok(7)), Some(Ok(7))));
}

#[test]
fn a_clone_and_a_dropped_receiver_that_lag_are_counted_right() {
    let (sender, mut receiver) = broadcast::channel(2);
    (0..3).for_each(|n| assert_eq!(sender.send(n), Ok(1)));
    let mut clone = receiver.clone();
    let mut late = receiver.resubscribe();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
    drop(receiver);
    assert_eq!(sender.len(), 2, "the clone has not received them");
    assert_eq!(clone.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(clone.try_recv(), Ok(1));
    drop(clone);
    assert_eq!((sender.len(), sender.receivers()), (0, 1));
    sender.send(9).unwrap();
    assert_eq!(late.try_recv(), Ok(9));
    drop(late);
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(SendError(1)), "there are no receivers");
}

#[test]
fn a_message_is_dropped_when_all_have_received_or_missed_it() {
    let message = Arc::new(());
    let (sender, mut one) = broadcast::channel(1);
    let other = sender.subscribe();
    sender.send(message.clone()).unwrap();
    drop(one.try_recv().unwrap());
    assert_eq!(Arc::strong_count(&message), 2);
    sender.send(Arc::new(())).unwrap();
    assert_eq!(Arc::strong_count(&message), 1, "missed by the other");
    drop(other);
    sender.send(message.clone()).unwrap();
    drop(one);
    assert_eq!(Arc::strong_count(&message), 1, "dropped with its last receiver");
}

#[test]
fn the_last_receiver_of_a_message_does_not_clone_it() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    #[derive(Debug)]
    struct Counted;
    impl Clone for Counted {
        fn clone(&self) -> Self {
            CLONES.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }
    let (sender, mut one) = broadcast::channel(2);
    let mut other = sender.subscribe();
    sender.send(Counted).unwrap();
    assert!(one.try_recv().is_ok() && other.try_recv().is_ok());
    assert_eq!(CLONES.load(Ordering::Relaxed), 1);
}
