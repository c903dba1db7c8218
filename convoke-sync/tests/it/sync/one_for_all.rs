//! Tests of event, barrier, once cell, oneshot, watch and broadcast.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use convoke::sync::channel::{SendError, TryRecvError, TrySendError};
use convoke::sync::{Barrier, Event, OnceCell, lossless_broadcast, oneshot, watch};

use crate::sync::polled::{polled, ready, waits};

#[test]
fn setting_an_event_wakes_all_waiters_even_if_it_is_reset_at_once() {
    let event = Event::new();
    let (mut first, mut second) = (waits(event.wait()), waits(event.wait()));
    event.set();
    event.reset();
    let late = waits(event.wait());
    assert_eq!((first.poll(), second.poll()), (Some(()), Some(())));
    assert_eq!(late.wakes(), 0);
    event.set();
    ready(event.wait());
}

#[test]
fn a_barrier_does_not_count_a_dropped_wait() {
    let barrier = Barrier::new(2);
    drop(waits(barrier.wait()));
    let mut first = waits(barrier.wait());
    assert!(ready(barrier.wait()).is_leader());
    assert_eq!(first.poll().map(|met| met.is_leader()), Some(false));
    let _next_meeting = waits(barrier.wait());
}

#[test]
fn a_wait_dropped_after_its_round_is_complete_does_not_affect_the_next_round() {
    let barrier = Barrier::new(2);
    let first = waits(barrier.wait());
    ready(barrier.wait());
    drop(first);
    let _second_meeting = waits(barrier.wait());
    ready(barrier.wait());
}

#[test]
fn a_value_is_initialised_by_the_next_if_the_first_fails_or_is_dropped() {
    let cell = OnceCell::new();
    let calls = AtomicU32::new(0);
    let call = |value| {
        calls.fetch_add(1, Ordering::Relaxed);
        value
    };
    let hangs = waits(cell.get_or_init(std::future::pending::<u8>));
    let mut fails = waits(cell.get_or_try_init(async || call(Err("no"))));
    let mut makes = waits(cell.get_or_try_init(async || call(Ok::<_, &str>(7))));
    assert_eq!(cell.set(1), Err(1), "another task initialises it");
    let mut waiter = waits(cell.wait());
    drop(hangs);
    assert_eq!(fails.poll(), Some(Err("no")));
    assert_eq!(makes.poll(), Some(Ok(&7)));
    assert_eq!(waiter.poll(), Some(&7));
    assert_eq!((calls.load(Ordering::Relaxed), cell.get()), (2, Some(&7)));
    assert_eq!(ready(cell.get_or_init(|| async { unreachable!("initialised before") })), &7);
}

#[test]
fn a_oneshot_message_is_received_even_if_a_wait_for_it_was_dropped() {
    let (sender, mut receiver) = oneshot::channel();
    let waiting = waits(receiver.recv());
    sender.send(1).unwrap();
    assert_eq!(waiting.wakes(), 1);
    drop(waiting);
    assert_eq!((ready(receiver.recv()), ready(receiver.recv())), (Some(1), None));
}

#[test]
fn each_half_of_a_oneshot_learns_that_the_other_was_dropped() {
    let (sender, mut receiver) = oneshot::channel::<u8>();
    let mut waiting = waits(receiver.recv());
    drop(sender);
    assert_eq!(waiting.poll(), Some(None));
    drop(waiting);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    let (mut sender, receiver) = oneshot::channel();
    let mut waiting = waits(sender.closed());
    drop(receiver);
    assert_eq!(waiting.poll(), Some(()));
    drop(waiting);
    assert_eq!(sender.send(1), Err(SendError(1)));
}

#[test]
fn closing_a_oneshot_loses_no_sent_message() {
    let (sender, mut receiver) = oneshot::channel();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(ready(receiver.recv()), Some(1));
}

#[test]
fn a_watch_receiver_sees_the_latest_value_and_then_the_end() {
    let (sender, mut receiver) = watch::channel(0);
    let mut waiting = waits(receiver.changed());
    sender.send(1).unwrap();
    sender.modify(|value| *value += 1);
    assert_eq!(waiting.poll(), Some(Ok(())));
    drop(waiting);
    assert_eq!(*receiver.borrow(), 2);
    let mut other = sender.subscribe();
    assert!(!receiver.has_changed() && !other.has_changed());
    sender.send(3).unwrap();
    drop(sender);
    assert_eq!(ready(receiver.changed()), Ok(()), "the last value is not lost");
    assert_eq!(*other.borrow_and_update(), 3);
    assert!(ready(receiver.changed()).is_err() && ready(other.changed()).is_err());
}

#[test]
fn a_wait_for_a_value_checks_the_current_one_and_each_that_it_sees() {
    let (sender, mut receiver) = watch::channel(1);
    assert_eq!(*ready_here(receiver.wait_for(|value| *value == 1)).unwrap(), 1);
    let mut checked = Vec::new();
    let mut waiting = Box::pin(receiver.wait_for(|value| {
        checked.push(*value);
        *value > 3
    }));
    for value in [2, 4] {
        assert!(poll_here(waiting.as_mut()).is_none());
        sender.send(value).unwrap();
    }
    assert_eq!(*poll_here(waiting.as_mut()).unwrap().unwrap(), 4);
    drop(waiting);
    assert_eq!(checked, [1, 2, 4]);
    assert!(!receiver.has_changed(), "it is marked as seen");
    drop(sender);
    assert!(receiver.is_closed());
    assert!(ready_here(receiver.wait_for(|value| *value == 5)).is_err());
    assert_eq!(
        *ready_here(receiver.wait_for(|value| *value == 4)).unwrap(),
        4,
        "the last value still counts"
    );
}

/// Polls a future once whose result is not `Send`.
fn poll_here<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn ready_here<T>(future: impl Future<Output = T>) -> T {
    poll_here(pin!(future)).expect("the future was not ready")
}

#[test]
fn receivers_of_a_watch_are_told_only_of_values_that_were_changed() {
    let (sender, mut receiver) = watch::channel(1);
    assert!(!sender.modify_if(|_| false) && !receiver.has_changed());
    assert!(sender.modify_if(|value| {
        *value = 2;
        true
    }));
    assert!(receiver.has_changed());
    receiver.mark_unchanged();
    let waiting = waits(receiver.changed());
    drop(waiting);
    receiver.mark_changed();
    assert_eq!(ready(receiver.changed()), Ok(()));
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn a_value_without_receivers_is_returned() {
    let (sender, receiver) = watch::channel(0);
    let mut waiting = waits(sender.closed());
    drop(receiver);
    assert_eq!(waiting.poll(), Some(()));
    assert_eq!(sender.send(1), Err(SendError(1)));
    assert_eq!(sender.replace(2), 0);
    assert_eq!(*sender.subscribe().borrow(), 2);
}

#[test]
fn the_slowest_broadcast_receiver_holds_up_senders_and_none_misses_a_message() {
    let (sender, mut fast) = lossless_broadcast::channel(1);
    let mut slow = fast.clone();
    ready(sender.send(1)).unwrap();
    let mut waiting = waits(sender.send(2));
    assert_eq!(ready(fast.recv()), Some(1));
    assert_eq!(waiting.wakes(), 0);
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert_eq!(ready(slow.recv()), Some(1));
    assert_eq!(waiting.poll().map(|sent| sent.is_ok()), Some(true));
    drop(waiting);
    drop(sender);
    assert_eq!((ready(fast.recv()), ready(fast.recv())), (Some(2), None));
    assert_eq!((ready(slow.recv()), ready(slow.recv())), (Some(2), None));
}

#[test]
fn a_dropped_broadcast_receiver_holds_up_no_sender() {
    let (sender, mut receiver) = lossless_broadcast::channel(1);
    let slow = sender.subscribe();
    ready(sender.send(1)).unwrap();
    assert_eq!(ready(receiver.recv()), Some(1));
    let (first, mut second) = (waits(sender.send(2)), waits(sender.send(3)));
    drop(slow);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1, "the grant is passed on");
    assert!(second.poll().unwrap().is_ok());
    assert_eq!(ready(receiver.recv()), Some(3));
    let mut waiting = polled(sender.send(4));
    drop(receiver);
    assert_eq!(waiting.poll(), Some(Err(SendError(4))), "there are no receivers");
}
