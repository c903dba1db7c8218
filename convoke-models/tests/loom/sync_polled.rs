//! Models of notifications, permits to send, receivers that are polled as streams, and threads that block.
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_sync::channel::TryRecvError;
use convoke_sync::{Notify, broadcast, mpmc, mpsc, oneshot};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;
use futures_core::Stream;

fn notified(notify: &Arc<Notify>) -> ByHand<'static, ()> {
    let notify = notify.clone();
    ByHand::new(async move { notify.notified().await })
}

/// Waits for the next item of a stream, and returns it with the stream.
fn next<S: Stream<Item: Send> + Unpin + Send + 'static>(
    mut stream: S,
) -> ByHand<'static, (Option<S::Item>, S)> {
    ByHand::new(async move {
        let item = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await;
        (item, stream)
    })
}

#[test]
fn a_notification_that_comes_while_one_begins_to_wait_is_heard() {
    static STORED: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let notify = Arc::new(Notify::new());
        let notifies = notify.clone();
        let notifies = thread::spawn(move || notifies.notify_one());
        let mut waits = notified(&notify);
        let at_once = waits.poll().is_some();
        notifies.join().unwrap();
        STORED.here_if(at_once);
        WOKEN.here_if(!at_once);
        if !at_once {
            waits.finish();
        }
        assert!(notified(&notify).poll().is_none(), "it is taken once");
    });
    STORED.assert("it was stored");
    WOKEN.assert("it was waited for");
}

#[test]
fn a_notification_that_comes_while_the_first_goes_is_the_seconds() {
    static HANDED_ON: Reached = Reached::new();
    static GONE_BEFORE: Reached = Reached::new();
    explore(3, || {
        let notify = Arc::new(Notify::new());
        let (mut first, mut second) = (notified(&notify), notified(&notify));
        assert!(first.poll().is_none() && second.poll().is_none());
        let goes = thread::spawn(move || {
            let wakes = first.wakes();
            drop(first);
            wakes
        });
        notify.notify_one();
        let handed_on = goes.join().unwrap() == 1;
        HANDED_ON.here_if(handed_on);
        GONE_BEFORE.here_if(!handed_on);
        second.finish();
        assert!(notified(&notify).poll().is_none());
    });
    HANDED_ON.assert("the first was notified, and passed it on");
    GONE_BEFORE.assert("the first had gone, or had not been notified yet");
}

#[test]
fn a_notification_for_all_and_one_for_one_are_not_mixed_up() {
    static BOTH: Reached = Reached::new();
    static STORED: Reached = Reached::new();
    explore(3, || {
        let notify = Arc::new(Notify::new());
        let mut waits = notified(&notify);
        assert!(waits.poll().is_none());
        let all = notify.clone();
        let all = thread::spawn(move || all.notify_waiters());
        notify.notify_one();
        all.join().unwrap();
        waits.finish();
        // It was granted by one of the two. If not by `notify_one`, that one is stored.
        let stored = notified(&notify).poll().is_some();
        STORED.here_if(stored);
        BOTH.here_if(!stored);
    });
    STORED.assert("the waiter was notified with all");
    BOTH.assert("the waiter was notified alone");
}

#[test]
fn a_slot_that_is_freed_while_the_first_goes_is_the_seconds() {
    static PASSED_ON: Reached = Reached::new();
    static GONE_BEFORE: Reached = Reached::new();
    explore(3, || {
        let (sender, receiver) = mpmc::channel(1);
        let permit = sender.try_reserve_owned().unwrap();
        let (one, other) = (sender.clone(), sender.clone());
        let mut first = ByHand::new(async move { one.reserve_owned().await.is_ok() });
        let mut second = ByHand::new(async move { other.send(7).await.is_ok() });
        assert!(first.poll().is_none() && second.poll().is_none());
        let goes = thread::spawn(move || {
            let wakes = first.wakes();
            drop(first);
            wakes
        });
        drop(permit);
        let passed_on = goes.join().unwrap() == 1;
        PASSED_ON.here_if(passed_on);
        GONE_BEFORE.here_if(!passed_on);
        assert!(second.finish());
        assert_eq!(receiver.try_recv(), Ok(7));
        sender.try_send(8).expect("the slot is free");
    });
    PASSED_ON.assert("it was reserved for the first, and passed on");
    GONE_BEFORE.assert("the first had gone");
}

#[test]
fn the_last_permit_of_a_closed_channel_ends_it() {
    static RECEIVED_AT_ONCE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel(1);
        let permit = sender.try_reserve_owned().unwrap();
        receiver.close();
        let sends = thread::spawn(move || permit.send(7));
        let mut waits = ByHand::new(receiver.recv());
        let at_once = waits.poll();
        RECEIVED_AT_ONCE.here_if(at_once.is_some());
        WAITED.here_if(at_once.is_none());
        assert_eq!(at_once.unwrap_or_else(|| waits.wait()), Some(7), "a permit is a promise");
        sends.join().unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        drop(sender);
    });
    RECEIVED_AT_ONCE.assert("it was sent before");
    WAITED.assert("it was waited for, although the channel was closed");
}

#[test]
fn a_message_that_is_sent_while_a_stream_begins_to_wait_is_received() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, receiver) = mpsc::channel(1);
        let sends = thread::spawn(move || {
            sender.try_send(7).unwrap();
            sender
        });
        let mut waits = next(receiver);
        let received = waits.poll();
        let _sender = sends.join().unwrap();
        AT_ONCE.here_if(received.is_some());
        WOKEN.here_if(received.is_none());
        assert_eq!(received.unwrap_or_else(|| waits.finish()).0, Some(7));
    });
    AT_ONCE.assert("it was there");
    WOKEN.assert("it was waited for");
}

#[test]
fn a_stream_that_is_dropped_while_a_message_comes_leaves_it_to_the_other() {
    explore(3, || {
        let (sender, receiver) = mpmc::channel(1);
        let mut goes = next(receiver.clone());
        let mut stays = next(receiver);
        assert!(goes.poll().is_none() && stays.poll().is_none());
        let goes = thread::spawn(move || drop(goes));
        sender.try_send(7).unwrap();
        goes.join().unwrap();
        assert_eq!(stays.finish().0, Some(7));
    });
}

#[test]
fn a_broadcast_that_drops_a_message_while_it_is_received_loses_it_or_not() {
    static MISSED: Reached = Reached::new();
    static RECEIVED: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = broadcast::channel(1);
        let mut other = sender.subscribe();
        sender.send(1).unwrap();
        let sends = thread::spawn(move || sender.send(2).map(|_| sender));
        match receiver.try_recv() {
            Ok(1) => RECEIVED.here(),
            Ok(2) => unreachable!("the first one was neither received nor missed"),
            missed => {
                assert_eq!(missed, Err(broadcast::TryRecvError::Lagged(1)));
                MISSED.here();
            }
        }
        let _sender = sends.join().unwrap().unwrap();
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(other.try_recv(), Err(broadcast::TryRecvError::Lagged(1)));
        assert_eq!(other.try_recv(), Ok(2));
    });
    MISSED.assert("it was too slow");
    RECEIVED.assert("it was fast enough");
}

#[test]
fn a_oneshot_message_that_is_sent_while_its_receiver_begins_to_wait_is_received() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, receiver) = oneshot::channel();
        let sends = thread::spawn(move || sender.send(7).unwrap());
        let mut waits = ByHand::new(receiver);
        let received = waits.poll();
        sends.join().unwrap();
        AT_ONCE.here_if(received.is_some());
        WOKEN.here_if(received.is_none());
        assert_eq!(received.unwrap_or_else(|| waits.finish()), Ok(7));
    });
    AT_ONCE.assert("it was there");
    WOKEN.assert("it was waited for");
}

#[test]
fn a_thread_that_blocks_is_woken_for_each_message() {
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel(1);
        let sends = thread::spawn(move || {
            sender.blocking_send(1).unwrap();
            sender.blocking_send(2).unwrap();
        });
        assert_eq!((receiver.blocking_recv(), receiver.blocking_recv()), (Some(1), Some(2)));
        assert_eq!(receiver.blocking_recv(), None);
        sends.join().unwrap();
    });
}
