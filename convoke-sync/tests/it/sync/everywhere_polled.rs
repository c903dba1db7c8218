//! A stop at every await of programs that use permits, notifications, streams and a oneshot receiver as a
//! future: nothing is lost.

use std::sync::{Arc, Mutex as StdMutex};

use convoke::prelude::*;
use convoke::sync::{Notify, mpmc, oneshot};
use convoke::testing::{Ended, explore_inner_stops, explore_stops};

use crate::sync::polled::{ready, waits};
use crate::sync::streams::next;

#[test]
fn no_slot_and_no_message_is_lost_wherever_a_stop_comes() {
    let left = StdMutex::new(Vec::new());
    let exploration = explore_stops(|| {
        let (sender, receiver) = mpmc::channel(2);
        let counts = Arc::new(StdMutex::new((0, 0)));
        left.lock().unwrap().push((sender.clone(), receiver.clone(), counts.clone()));
        async move {
            scope(async |s| {
                for number in 0..3 {
                    let (sender, counts) = (sender.clone(), counts.clone());
                    s.spawn(async move {
                        for n in 0..3 {
                            let permit = sender.reserve().await.unwrap();
                            checkpoint().await;
                            // Some permits are dropped without a message.
                            if n != number {
                                permit.send(n);
                                counts.lock().unwrap().0 += 1;
                            }
                        }
                    });
                }
                for _ in 0..2 {
                    let (mut receiver, counts) = (receiver.clone(), counts.clone());
                    s.spawn(async move {
                        for _ in 0..3 {
                            next(&mut receiver).await.unwrap();
                            counts.lock().unwrap().1 += 1;
                        }
                    });
                }
            })
            .await;
        }
    });
    assert!(cfg!(miri) || exploration.ended(Ended::Stopped) > 10, "{exploration}");
    for (sender, receiver, counts) in &*left.lock().unwrap() {
        let (sent, mut received) = *counts.lock().unwrap();
        received += std::iter::from_fn(|| receiver.try_recv().ok()).count();
        assert_eq!(sent, received);
        let (_one, _two) = (sender.try_reserve().unwrap(), sender.try_reserve().unwrap());
        assert!(sender.try_reserve().is_err(), "there are two slots, and no more");
    }
}

#[test]
fn a_notification_reaches_one_that_is_not_stopped_wherever_a_stop_comes() {
    let left = StdMutex::new(Vec::new());
    let exploration = explore_inner_stops(|| {
        let notified = Arc::new((Notify::new(), StdMutex::new((0, 0))));
        left.lock().unwrap().push(notified.clone());
        async move {
            scope(async |s| {
                for _ in 0..3 {
                    let notified = notified.clone();
                    s.spawn(async move {
                        if catch_stopped(notified.0.notified()).await.is_ok() {
                            notified.1.lock().unwrap().1 += 1;
                        }
                    });
                }
                checkpoint().await;
                for _ in 0..3 {
                    notified.0.notify_one();
                    notified.1.lock().unwrap().0 += 1;
                    checkpoint().await;
                }
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > 3, "{exploration}");
    for notified in &*left.lock().unwrap() {
        let (sent, heard) = *notified.1.lock().unwrap();
        assert!(heard <= sent);
        // What was not heard is stored, once.
        if heard < sent {
            ready(notified.0.notified());
        }
        let _none = waits(notified.0.notified());
    }
}

#[test]
fn a_oneshot_that_is_awaited_is_received_or_still_there_wherever_a_stop_comes() {
    let left = StdMutex::new(Vec::new());
    let exploration = explore_inner_stops(|| {
        let (sender, receiver) = oneshot::channel();
        let slot = Arc::new(StdMutex::new((false, None, Some(receiver))));
        left.lock().unwrap().push(slot.clone());
        async move {
            scope(async |s| {
                let sends = slot.clone();
                s.spawn(async move {
                    checkpoint().await;
                    let sent = sender.send(7).is_ok();
                    sends.lock().unwrap().0 = sent;
                });
                s.spawn(async move {
                    let mut receiver = slot.lock().unwrap().2.take().unwrap();
                    let received = catch_stopped(&mut receiver).await;
                    let mut slot = slot.lock().unwrap();
                    slot.1 = received.ok().and_then(Result::ok);
                    slot.2 = Some(receiver);
                });
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > 0, "{exploration}");
    let mut still_there = 0;
    for slot in &*left.lock().unwrap() {
        let mut slot = slot.lock().unwrap();
        let rest = slot.2.as_mut().and_then(|receiver| receiver.try_recv().ok());
        still_there += usize::from(rest.is_some());
        assert_eq!(slot.1.or(rest), slot.0.then_some(7));
    }
    assert!(still_there > 0, "some runs were stopped before they received");
}
