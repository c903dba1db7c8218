//! Tests of `mpsc` and `mpmc`.

use std::sync::Arc;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::channel::{SendError, TryRecvError, TrySendError};
use convoke::sync::{mpmc, mpsc};

use crate::sync::polled::{ready, waits};

#[test]
fn a_send_to_a_full_channel_waits_and_messages_stay_in_order() {
    let (sender, mut receiver) = mpsc::channel(1);
    ready(sender.send(1)).unwrap();
    let (mut second, mut third) = (waits(sender.send(2)), waits(sender.send(3)));
    assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!(ready(receiver.recv()), Some(1));
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    assert_eq!(second.poll(), Some(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Ok(3));
    assert_eq!(third.poll(), Some(Ok(())));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_message_handed_to_a_dropped_receive_is_received_first() {
    let (sender, mut receiver) = mpsc::channel(1);
    let waiting = waits(receiver.recv());
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(waiting.wakes(), 1);
    drop(waiting);
    assert_eq!(receiver.len(), 2, "for the moment one more than the capacity");
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_notified_receive_that_is_dropped_notifies_the_next() {
    let (sender, receiver) = mpmc::channel(4);
    let (first, mut second) = (waits(receiver.recv()), waits(receiver.recv()));
    sender.try_send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.poll(), Some(Some(1)));
}

#[test]
fn a_notified_receive_that_was_overtaken_waits_in_front() {
    let (sender, receiver) = mpmc::channel(4);
    let (mut first, mut second) = (waits(receiver.recv()), waits(receiver.recv()));
    sender.try_send(1).unwrap();
    assert_eq!(ready(receiver.recv()), Some(1), "a receive that does not wait may overtake");
    assert_eq!(first.poll(), None);
    sender.try_send(2).unwrap();
    assert_eq!(second.poll(), None);
    assert_eq!(first.poll(), Some(Some(2)));
}

#[test]
fn closing_delivers_sent_messages_and_returns_unsent_ones() {
    let (sender, mut receiver) = mpsc::channel(1);
    ready(sender.send("sent")).unwrap();
    let mut waiting = waits(sender.send("not sent"));
    receiver.close();
    assert_eq!(waiting.poll(), Some(Err(SendError("not sent"))));
    assert_eq!(ready(sender.send("late")), Err(SendError("late")));
    assert_eq!(sender.try_send("late"), Err(TrySendError::Closed("late")));
    assert_eq!(ready(receiver.recv()), Some("sent"));
    assert_eq!(ready(receiver.recv()), None);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn dropping_the_last_sender_closes_the_channel_and_wakes_all_waiters() {
    let (sender, receiver) = mpmc::channel::<u8>(1);
    let other = sender.clone();
    let (mut first, mut second) = (waits(receiver.recv()), waits(receiver.recv()));
    drop(sender);
    assert_eq!(first.wakes(), 0);
    drop(other);
    assert_eq!((first.poll(), second.poll()), (Some(None), Some(None)));
}

#[test]
fn a_message_left_behind_by_one_receive_at_the_end_is_found_by_another() {
    let (sender, receiver) = mpmc::channel(1);
    let (told, mut other) = (waits(receiver.recv()), waits(receiver.recv()));
    sender.try_send(1).unwrap();
    drop(sender);
    drop(told);
    assert_eq!(other.poll(), Some(Some(1)));
    assert_eq!(ready(receiver.recv()), None);
}

#[test]
fn dropping_the_last_receiver_closes_the_channel_and_drops_the_messages() {
    let message = Arc::new(());
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(message.clone()).unwrap();
    let mut waiting = waits(sender.send(message.clone()));
    assert_eq!(Arc::strong_count(&message), 3);
    drop(receiver);
    assert_eq!(Arc::strong_count(&message), 2);
    assert!(waiting.poll().unwrap().is_err());
    assert!(sender.is_closed());
    drop(waiting);
    assert_eq!(Arc::strong_count(&message), 1);
}

#[test]
fn a_send_that_is_dropped_while_it_waits_does_not_send() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    drop(waits(sender.send(2)));
    drop(sender);
    assert_eq!((ready(receiver.recv()), ready(receiver.recv())), (Some(1), None));
}

#[test]
fn an_unbounded_channel_is_never_full() {
    const MANY: usize = if cfg!(miri) { 50 } else { 10_000 };
    let (sender, mut receiver) = mpsc::unbounded();
    for n in 0..MANY {
        ready(sender.send(n)).unwrap();
    }
    assert_eq!((0..MANY).find(|n| receiver.try_recv() != Ok(*n)), None);
}

#[test]
fn a_large_capacity_is_kept_without_allocating_it_at_once() {
    let (sender, _receiver) = mpsc::channel(100);
    for n in 0..100 {
        sender.try_send(n).unwrap();
    }
    assert_eq!(sender.try_send(100), Err(TrySendError::Full(100)));
}

#[test]
fn on_two_threads_every_message_arrives_once() {
    const SENDERS: u64 = 3;
    const EACH: u64 = if cfg!(miri) { 10 } else { 2_000 };
    let pool = ThreadPool::new(2).unwrap();
    let work = task(async {
        scope(async |s| {
            let (sender, receiver) = mpmc::channel(3);
            for sender_number in 0..SENDERS {
                let sender = sender.clone();
                s.spawn(async move {
                    for n in 0..EACH {
                        sender.send(sender_number * EACH + n).await.unwrap();
                    }
                });
            }
            drop(sender);
            let receivers: Vec<_> = (0..2)
                .map(|_| {
                    let receiver = receiver.clone();
                    s.spawn_future(async move {
                        let mut seen = Vec::new();
                        while let Some(n) = receiver.recv().await {
                            seen.push(n);
                        }
                        seen
                    })
                })
                .collect();
            let mut all = Vec::new();
            for receiver in receivers {
                all.extend(receiver.await);
            }
            all.sort_unstable();
            all
        })
        .await
    });
    let all = sync_wait(pool.executor().schedule().let_value(move |()| work)).unwrap();
    assert_eq!(all, (0..SENDERS * EACH).collect::<Vec<_>>());
}
