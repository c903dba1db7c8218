//! Tests of reserved slots: they count as filled, go to senders in order, and none is lost.

use convoke::sync::channel::{SendError, TryRecvError, TrySendError};
use convoke::sync::{mpmc, mpsc};

use crate::sync::polled::{ready, waits};

#[test]
fn a_reserved_slot_counts_as_filled_until_it_is_used_or_dropped() {
    let (sender, mut receiver) = mpsc::channel(2);
    let permit = ready(sender.reserve()).unwrap();
    sender.try_send(1).unwrap();
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    assert!(matches!(sender.try_reserve(), Err(TrySendError::Full(()))));
    permit.send(3);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(3)));
    let (one, two) = (sender.try_reserve().unwrap(), sender.try_reserve_owned().unwrap());
    assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
    drop(one);
    sender.try_send(4).unwrap();
    two.send(5);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(4), Ok(5)));
}

#[test]
fn sends_and_reservations_wait_in_one_order() {
    let (sender, receiver) = mpmc::channel(1);
    sender.try_send(1).unwrap();
    let mut reserves = waits(sender.reserve());
    let mut sends = waits(sender.send(3));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((reserves.wakes(), sends.wakes()), (1, 0));
    let permit = reserves.poll().unwrap().unwrap();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "the slot is reserved, and not filled");
    permit.send(2);
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(sends.poll(), Some(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(3));
}

#[test]
fn a_slot_that_is_given_up_goes_to_the_next_sender() {
    let (sender, receiver) = mpmc::channel(1);
    let permit = sender.try_reserve().unwrap();
    let (first, mut second) = (waits(sender.reserve()), waits(sender.send(7)));
    drop(permit);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.poll(), Some(Ok(())), "the slot was passed on");
    assert_eq!(receiver.try_recv(), Ok(7));
}

#[test]
fn a_dropped_permit_lets_a_waiting_receiver_have_the_message_that_waited() {
    let (sender, mut receiver) = mpsc::channel(1);
    let permit = sender.try_reserve().unwrap();
    let mut sends = waits(sender.send(7));
    let mut receives = waits(receiver.recv());
    drop(permit);
    assert_eq!(sends.poll(), Some(Ok(())));
    assert_eq!(receives.poll(), Some(Some(7)));
}

#[test]
fn a_message_that_is_handed_over_frees_its_slot_for_all_who_wait() {
    let (sender, mut receiver) = mpsc::channel(1);
    let permit = sender.try_reserve().unwrap();
    let mut sends = waits(sender.send(2));
    let mut receives = waits(receiver.recv());
    permit.send(1);
    assert_eq!((receives.poll(), sends.poll()), (Some(Some(1)), Some(Ok(()))));
    drop(receives);
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn a_channel_that_is_closed_ends_with_its_last_permit() {
    let (sender, mut receiver) = mpsc::channel(2);
    let (one, two) = (sender.try_reserve().unwrap(), sender.try_reserve().unwrap());
    let mut late = waits(sender.reserve());
    receiver.close();
    assert!(matches!(late.poll(), Some(Err(SendError(())))));
    assert!(matches!(sender.try_reserve(), Err(TrySendError::Closed(()))));
    let mut receives = waits(receiver.recv());
    one.send(1);
    assert_eq!(receives.poll(), Some(Some(1)), "a permit is a promise");
    drop(receives);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let mut receives = waits(receiver.recv());
    drop(two);
    assert_eq!(receives.poll(), Some(None));
}

#[test]
fn a_permit_without_a_receiver_drops_its_message() {
    let (sender, receiver) = mpsc::channel(1);
    let message = std::sync::Arc::new(());
    let permit = sender.try_reserve_owned().unwrap();
    drop(receiver);
    permit.send(message.clone());
    assert_eq!(std::sync::Arc::strong_count(&message), 1);
}

#[test]
fn an_owned_permit_keeps_the_channel_open() {
    let (sender, mut receiver) = mpsc::channel(1);
    let permit = ready(sender.reserve_owned()).unwrap();
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    permit.send(1);
    assert_eq!((ready(receiver.recv()), ready(receiver.recv())), (Some(1), None));
}

#[test]
fn a_message_that_was_put_back_over_the_capacity_leaves_a_permit_usable() {
    let (sender, mut receiver) = mpsc::channel(1);
    let waiting = waits(receiver.recv());
    sender.try_send(1).unwrap();
    let permit = sender.try_reserve().unwrap();
    drop(waiting);
    permit.send(2);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
}
