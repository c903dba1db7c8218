//! Tests of receivers that are polled as streams, and of the oneshot receiver as a future.

use std::future::poll_fn;
use std::pin::Pin;

use convoke::sync::broadcast::Lagged;
use convoke::sync::oneshot::Closed;
use convoke::sync::{broadcast, lossless_broadcast, mpmc, mpsc, oneshot, watch};
use futures_core::Stream;

use crate::sync::polled::{ready, waits};

/// Waits for the next item.
pub(crate) fn next<S: Stream + Unpin>(stream: &mut S) -> impl Future<Output = Option<S::Item>> {
    poll_fn(move |cx| Pin::new(&mut *stream).poll_next(cx))
}

#[test]
fn the_stream_of_a_queue_has_its_messages_and_its_end() {
    let (sender, mut receiver) = mpsc::channel(2);
    let mut first = waits(next(&mut receiver));
    sender.try_send(1).unwrap();
    assert_eq!(first.wakes(), 1);
    assert_eq!(first.poll(), Some(Some(1)));
    drop(first);
    sender.try_send(2).unwrap();
    assert_eq!(ready(next(&mut receiver)), Some(2));
    let mut end = waits(next(&mut receiver));
    drop(sender);
    assert_eq!(end.poll(), Some(None));
}

#[test]
fn a_stream_makes_room_for_a_waiting_sender() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let mut sends = waits(sender.send(2));
    assert_eq!(ready(next(&mut receiver)), Some(1));
    assert_eq!(sends.poll(), Some(Ok(())));
    assert_eq!(ready(next(&mut receiver)), Some(2));
}

#[test]
fn a_stream_that_is_not_polled_any_more_holds_up_neither_its_receiver_nor_others() {
    let (sender, mut receiver) = mpsc::channel(4);
    drop(waits(next(&mut receiver)));
    let mut receives = waits(receiver.recv());
    sender.try_send(1).unwrap();
    assert_eq!(receives.poll(), Some(Some(1)));

    let (sender, mut one) = mpmc::channel(4);
    let mut other = one.clone();
    drop(waits(next(&mut one)));
    let mut receives = waits(one.recv());
    let mut listens = waits(next(&mut other));
    sender.try_send(1).unwrap();
    assert_eq!((receives.wakes(), listens.wakes()), (1, 1));
    assert_eq!(receives.poll(), Some(Some(1)));
    assert_eq!(listens.poll(), None);
    sender.try_send(2).unwrap();
    assert_eq!(listens.poll(), Some(Some(2)));
}

#[test]
fn a_stream_that_moves_between_polls_is_still_woken() {
    let (sender, mut receiver) = mpmc::channel(1);
    let waiting = waits(next(&mut receiver));
    drop(waiting);
    let mut moved = Box::new(receiver);
    let mut waiting = waits(next(&mut *moved));
    sender.try_send(7).unwrap();
    assert_eq!(waiting.poll(), Some(Some(7)));
}

#[test]
fn a_dropped_stream_that_waits_leaves_the_channel() {
    let (sender, mut receiver) = mpmc::channel(1);
    let other = receiver.clone();
    drop(waits(next(&mut receiver)));
    drop(receiver);
    sender.try_send(1).unwrap();
    assert_eq!(other.try_recv(), Ok(1));
}

#[test]
fn the_stream_of_a_lossless_broadcast_has_every_message() {
    let (sender, mut one) = lossless_broadcast::channel(1);
    let mut other = sender.subscribe();
    let mut waiting = waits(next(&mut one));
    sender.try_send(1).unwrap();
    assert_eq!(waiting.poll(), Some(Some(1)));
    drop(waiting);
    let mut sends = waits(sender.send(2));
    assert_eq!(ready(next(&mut other)), Some(1));
    assert_eq!(sends.poll().map(|sent| sent.is_ok()), Some(true));
    drop(sends);
    drop(sender);
    assert_eq!((ready(next(&mut one)), ready(next(&mut one))), (Some(2), None));
}

#[test]
fn the_stream_of_a_broadcast_says_what_it_has_missed() {
    let (sender, mut receiver) = broadcast::channel(1);
    let mut waiting = waits(next(&mut receiver));
    for n in 0..3 {
        sender.send(n).unwrap();
    }
    assert_eq!(waiting.poll(), Some(Some(Err(Lagged(2)))));
    drop((waiting, sender));
    assert_eq!((ready(next(&mut receiver)), ready(next(&mut receiver))), (Some(Ok(2)), None));
}

#[test]
fn the_stream_of_a_watch_begins_with_the_current_value_and_skips_to_the_latest() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(ready(next(&mut receiver)), Some(0));
    let mut waiting = waits(next(&mut receiver));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(waiting.poll(), Some(Some(2)));
    drop(waiting);
    sender.send(3).unwrap();
    drop(sender);
    assert_eq!((ready(next(&mut receiver)), ready(next(&mut receiver))), (Some(3), None));
}

#[test]
fn a_oneshot_receiver_is_a_future() {
    let (sender, mut receiver) = oneshot::channel();
    let waiting = waits(&mut receiver);
    sender.send(7).unwrap();
    assert_eq!(waiting.wakes(), 1);
    drop(waiting);
    assert!(receiver.is_closed() && !receiver.is_empty());
    assert_eq!(ready(&mut receiver), Ok(7), "the dropped wait took nothing");
    assert_eq!(ready(receiver), Err(Closed), "it was received before");
    let (sender, receiver) = oneshot::channel::<u8>();
    let mut waiting = waits(receiver);
    drop(sender);
    assert_eq!(waiting.poll(), Some(Err(Closed)));
}

#[test]
fn a_oneshot_receiver_that_moves_to_another_task_wakes_that_one() {
    let (sender, mut receiver) = oneshot::channel();
    let first = waits(&mut receiver);
    let first_wakes = first.wakes();
    drop(first);
    let mut second = waits(receiver);
    sender.send(7).unwrap();
    assert_eq!((first_wakes, second.wakes()), (0, 1));
    assert_eq!(second.poll(), Some(Ok(7)));
}
