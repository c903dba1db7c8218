//! Models of channels: a message that arrives while a wait for it starts or is dropped; capacity that becomes
//! free; the end.
use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_sync::channel::SendError;
use convoke_sync::{mpmc, mpsc, oneshot};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

#[test]
fn a_message_that_is_sent_while_one_begins_to_wait_is_received() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel(1);
        let sends = thread::spawn(move || {
            sender.try_send(7).unwrap();
            sender
        });
        let mut waits = ByHand::new(receiver.recv());
        let received = waits.poll();
        let _sender = sends.join().unwrap();
        AT_ONCE.here_if(received.is_some());
        WOKEN.here_if(received.is_none());
        assert_eq!(received.unwrap_or_else(|| waits.finish()), Some(7));
    });
    AT_ONCE.assert("it was there");
    WOKEN.assert("it was waited for");
}

#[test]
fn a_message_that_is_sent_while_the_receiver_gives_up_stays() {
    static GIVEN: Reached = Reached::new();
    static NOT_GIVEN: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut waits = ByHand::new(receiver.recv());
        assert!(waits.poll().is_none());
        let sends = thread::spawn(move || {
            sender.try_send(1).unwrap();
            let second = sender.try_send(2);
            (sender, second.is_ok())
        });
        drop(waits);
        let (_sender, second) = sends.join().unwrap();
        // There is capacity for the second only if the first was handed to the receiver.
        GIVEN.here_if(second);
        NOT_GIVEN.here_if(!second);
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv().is_ok(), second);
    });
    GIVEN.assert("it was put back");
    NOT_GIVEN.assert("it came afterwards");
}

#[test]
fn of_two_who_wait_one_goes_and_the_other_gets_the_message() {
    static TOLD_FIRST: Reached = Reached::new();
    explore(3, || {
        let (sender, receiver) = mpmc::channel(1);
        let (one, other) = (receiver.clone(), receiver.clone());
        let mut first = ByHand::new(async move { one.recv().await });
        let mut second = ByHand::new(async move { other.recv().await });
        assert!(first.poll().is_none() && second.poll().is_none());
        let goes = thread::spawn(move || {
            TOLD_FIRST.here_if(first.wakes() == 1);
            drop(first);
        });
        sender.try_send(7).unwrap();
        goes.join().unwrap();
        assert_eq!(second.finish(), Some(7));
        assert!(receiver.is_empty());
    });
    TOLD_FIRST.assert("the receiver that was woken left, and woke the other");
}

#[test]
fn who_waits_for_room_is_served_or_gone_when_room_is_made() {
    static SENT: Reached = Reached::new();
    static WITHDRAWN: Reached = Reached::new();
    explore(3, || {
        let (sender, receiver) = mpmc::channel(1);
        sender.try_send(1).unwrap();
        let sends = sender.clone();
        let mut waits = ByHand::new(async move { sends.send(2).await });
        assert!(waits.poll().is_none());
        let goes = thread::spawn(move || drop(waits));
        assert_eq!(receiver.try_recv(), Ok(1));
        goes.join().unwrap();
        let second = receiver.try_recv();
        SENT.here_if(second == Ok(2));
        WITHDRAWN.here_if(second.is_err());
        sender.try_send(3).expect("there is room either way");
    });
    SENT.assert("it was taken along");
    WITHDRAWN.assert("it was withdrawn");
}

#[test]
fn one_who_sends_beside_the_end_knows_whether_it_was_sent() {
    static SENT: Reached = Reached::new();
    static RETURNED: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(1).unwrap();
        let sends = thread::spawn(move || {
            let mut waits = ByHand::new(sender.send(2));
            let at_once = waits.poll();
            at_once.or_else(|| {
                while waits.wakes() == 0 {
                    thread::yield_now();
                }
                waits.poll()
            })
        });
        assert_eq!(receiver.try_recv(), Ok(1));
        receiver.close();
        let sent = sends.join().unwrap().expect("it was woken");
        SENT.here_if(sent.is_ok());
        RETURNED.here_if(sent == Err(SendError(2)));
        assert_eq!(receiver.try_recv().is_ok(), sent.is_ok(), "what was sent is received");
    });
    SENT.assert("before the end");
    RETURNED.assert("after it");
}

#[test]
fn the_last_sender_goes_while_one_begins_to_wait() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = mpsc::channel::<u8>(1);
        let goes = thread::spawn(move || drop(sender));
        let mut waits = ByHand::new(receiver.recv());
        let received = waits.poll();
        goes.join().unwrap();
        AT_ONCE.here_if(received.is_some());
        WOKEN.here_if(received.is_none());
        assert_eq!(received.unwrap_or_else(|| waits.finish()), None);
    });
    AT_ONCE.assert("it was the end");
    WOKEN.assert("it was waited for");
}

#[test]
fn one_message_is_received_or_returned() {
    static RECEIVED: Reached = Reached::new();
    static RETURNED: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = oneshot::channel();
        let sends = thread::spawn(move || sender.send(7).is_ok());
        let mut waits = ByHand::new(receiver.recv());
        let received = waits.poll();
        drop(waits);
        receiver.close();
        let sent = sends.join().unwrap();
        let received = received.flatten().or_else(|| receiver.try_recv().ok());
        assert_eq!(received, sent.then_some(7));
        RECEIVED.here_if(sent);
        RETURNED.here_if(!sent);
    });
    RECEIVED.assert("it was received");
    RETURNED.assert("it was returned");
}
