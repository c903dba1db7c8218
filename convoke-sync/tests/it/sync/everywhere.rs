//! A stop at every await of programs that use all types: no permit and no message is lost, and none is
//! delivered twice.

use std::sync::{Arc, Mutex as StdMutex};

use convoke::prelude::*;
use convoke::sync::{
    Barrier, Event, Mutex, OnceCell, RwLock, Semaphore, lossless_broadcast, mpmc, mpsc, oneshot, watch,
};
use convoke::testing::{Ended, explore_inner_stops, explore_inner_stops_with, explore_stops};

use crate::sync::polled::polled;

/// Returns a number of runs. Under Miri there are a few of them, and this is zero.
const fn at_least(runs: usize) -> usize {
    if cfg!(miri) { 0 } else { runs }
}

/// The state that each run of a program leaves behind, checked after the exploration.
struct Left<T>(StdMutex<Vec<Arc<T>>>);

impl<T> Left<T> {
    fn new() -> Self {
        Self(StdMutex::default())
    }

    fn add(&self, left: T) -> Arc<T> {
        let left = Arc::new(left);
        self.0.lock().unwrap().push(left.clone());
        left
    }

    fn each(&self, mut check: impl FnMut(&T)) {
        let all = self.0.lock().unwrap();
        assert!(all.len() > at_least(5), "the program was stopped at several awaits");
        all.iter().for_each(|left| check(left));
    }
}

#[test]
fn no_permit_is_lost_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_stops(|| {
        let semaphore = left.add(Semaphore::new(3));
        async move {
            scope(async |s| {
                for n in 0..6 {
                    let semaphore = semaphore.clone();
                    s.spawn(async move {
                        let _permits = semaphore.acquire_many(1 + n % 3).await;
                        checkpoint().await;
                        let _more = timeout(std::time::Duration::from_secs(1), semaphore.acquire()).await;
                        checkpoint().await;
                    });
                }
            })
            .await;
            checkpoint().await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(5), "{exploration}");
    left.each(|semaphore| assert_eq!(semaphore.available(), 3));
}

#[test]
fn no_lock_stays_locked_wherever_a_stop_comes() {
    let left = Left::new();
    explore_stops(|| {
        let locks = left.add((Mutex::new(0), RwLock::new(0)));
        async move {
            scope(async |s| {
                for n in 0..5 {
                    let locks = locks.clone();
                    s.spawn(async move {
                        *locks.0.lock().await += 1;
                        let _guard = locks.0.lock().await;
                        checkpoint().await;
                        if n % 2 == 0 {
                            *locks.1.write().await += 1;
                        } else {
                            let _read = locks.1.read().await;
                            checkpoint().await;
                        }
                    });
                }
            })
            .await;
        }
    });
    left.each(|(mutex, lock)| assert!(mutex.try_lock().is_some() && lock.try_write().is_some()));
}

/// The messages that were certainly sent, and those that were received.
#[derive(Default)]
struct Ledger {
    sent: StdMutex<Vec<u32>>,
    received: StdMutex<Vec<u32>>,
}

impl Ledger {
    /// Checks that each sent message was received once, or is in `rest`, which was still in the channel.
    fn check(&self, rest: impl IntoIterator<Item = u32>) {
        let mut received = self.received.lock().unwrap().clone();
        received.extend(rest);
        let arrived = received.len();
        received.sort_unstable();
        received.dedup();
        assert_eq!(received.len(), arrived, "a message arrived twice");
        for message in &*self.sent.lock().unwrap() {
            assert!(received.contains(message), "{message} was sent and is lost");
        }
    }
}

#[test]
fn no_message_is_lost_between_many_wherever_a_stop_comes() {
    let left = Left::new();
    explore_stops(|| {
        let (sender, receiver) = mpmc::channel(2);
        let left = left.add((Ledger::default(), receiver.clone()));
        async move {
            scope(async |s| {
                for number in 0..3 {
                    let (left, sender) = (left.clone(), sender.clone());
                    s.spawn(async move {
                        for message in number * 10..number * 10 + 4 {
                            if sender.send(message).await.is_ok() {
                                left.0.sent.lock().unwrap().push(message);
                            }
                        }
                    });
                }
                drop(sender);
                for number in 0..2 {
                    let (left, receiver) = (left.clone(), receiver.clone());
                    s.spawn(async move {
                        loop {
                            // One of them is impatient: it drops its wait again
                            // and again.
                            let message = if number == 0 {
                                match race((async { Some(receiver.recv().await) }, async {
                                    checkpoint().await;
                                    None
                                }))
                                .await
                                {
                                    Some(message) => message,
                                    None => continue,
                                }
                            } else {
                                receiver.recv().await
                            };
                            let Some(message) = message else { return };
                            left.0.received.lock().unwrap().push(message);
                            checkpoint().await;
                        }
                    });
                }
            })
            .await;
        }
    });
    left.each(|(ledger, receiver)| ledger.check(std::iter::from_fn(|| receiver.try_recv().ok())));
}

/// The only receiver, which is stored for the test when the task that has it ends.
struct StoreOnDrop {
    receiver: Option<mpsc::Receiver<u32>>,
    slot: Arc<(Ledger, StdMutex<Option<mpsc::Receiver<u32>>>)>,
}

impl Drop for StoreOnDrop {
    fn drop(&mut self) {
        *self.slot.1.lock().unwrap() = self.receiver.take();
    }
}

#[test]
fn no_message_is_lost_on_the_way_to_one_wherever_a_stop_comes() {
    let left = Left::new();
    explore_stops(|| {
        let (sender, receiver) = mpsc::channel(1);
        let slot = left.add((Ledger::default(), StdMutex::new(None)));
        let mut end = StoreOnDrop { receiver: Some(receiver), slot: slot.clone() };
        let sends = |number: u32| {
            let (slot, sender) = (slot.clone(), sender.clone());
            async move {
                for message in number * 10..number * 10 + 4 {
                    if sender.send(message).await.is_ok() {
                        slot.0.sent.lock().unwrap().push(message);
                    }
                    checkpoint().await;
                }
            }
        };
        let (one, other) = (sends(0), sends(1));
        drop(sender);
        let receives = async move {
            let receiver = end.receiver.as_mut().unwrap();
            while let Some(message) = receiver.recv().await {
                slot.0.received.lock().unwrap().push(message);
            }
        };
        // All in one task: a stop comes to a receiver that was handed a message and has not been polled
        // since.
        async move {
            join((receives, one, other)).await;
        }
    });
    left.each(|(ledger, receiver)| {
        let mut receiver = receiver.lock().unwrap();
        let receiver = receiver.as_mut().expect("the receiver was stored");
        ledger.check(std::iter::from_fn(|| receiver.try_recv().ok()));
    });
}

#[test]
fn barrier_and_broadcast_end_wherever_a_stop_comes() {
    let exploration = explore_stops(|| async {
        scope(async |s| {
            let barrier = Arc::new(Barrier::new(3));
            let (sender, receiver) = lossless_broadcast::channel(2);
            for _ in 0..3 {
                let (barrier, mut receiver) = (barrier.clone(), receiver.clone());
                s.spawn(async move {
                    barrier.wait().await;
                    let mut seen = Vec::new();
                    while let Some(message) = receiver.recv().await {
                        seen.push(message);
                    }
                    assert_eq!(seen, (0..seen.len() as u32).collect::<Vec<_>>());
                });
            }
            drop(receiver);
            for message in 0..5 {
                sender.send(message).await.expect("there are receivers");
            }
        })
        .await;
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(5), "{exploration}");
}

#[test]
fn a_wait_for_an_event_completes_or_is_stopped_and_no_waiter_stays_behind() {
    let left = Left::new();
    let exploration = explore_inner_stops(|| {
        let counted = left.add((Event::new(), StdMutex::new((0, 0))));
        async move {
            scope(async |s| {
                for _ in 0..3 {
                    let counted = counted.clone();
                    s.spawn(async move {
                        let heard = catch_stopped(counted.0.wait()).await.is_ok();
                        let mut count = counted.1.lock().unwrap();
                        if heard { count.0 += 1 } else { count.1 += 1 }
                    });
                }
                checkpoint().await;
                // Tasks that wait now continue, although the event is reset at once.
                counted.0.set();
                counted.0.reset();
                checkpoint().await;
                counted.0.set();
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(3), "{exploration}");
    let mut stopped = 0;
    left.each(|(event, count)| {
        let count = count.lock().unwrap();
        assert!(count.0 + count.1 <= 3);
        stopped += count.1;
        // No waiter is left that would be woken or hold up others.
        event.set();
        assert!(event.is_set());
    });
    assert!(stopped > 0, "some tasks were stopped while they waited");
}

#[test]
fn a_barrier_counts_only_present_tasks_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_inner_stops_with(|probe| {
        // The others miss a task that is stopped alone.
        probe.ends_only_when_stopped();
        let barrier = left.add(Barrier::new(3));
        async move {
            scope(async |s| {
                for n in 0..3 {
                    let barrier = barrier.clone();
                    s.spawn(async move {
                        for _ in 0..n {
                            checkpoint().await;
                        }
                        barrier.wait().await;
                        checkpoint().await;
                        barrier.wait().await;
                    });
                }
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(5), "{exploration}");
    left.each(|barrier| {
        // The barrier works like a new one: three tasks complete a round, and no fewer.
        let mut three = [(); 3].map(|()| polled(barrier.wait()));
        let met = three.each_mut().map(|waits| waits.poll().is_some());
        assert_eq!(met, [false, false, true]);
    });
}

#[test]
fn a_value_is_initialised_once_or_still_can_be_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_inner_stops(|| {
        let made = left.add((OnceCell::new(), StdMutex::new(0)));
        async move {
            scope(async |s| {
                for n in 0..3 {
                    let made = made.clone();
                    s.spawn(async move {
                        let value = made.0.get_or_init(|| async {
                            checkpoint().await;
                            *made.1.lock().unwrap() += 1;
                            n
                        });
                        let value = *value.await;
                        assert_eq!(made.0.get(), Some(&value));
                    });
                }
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(3), "{exploration}");
    let mut unmade = 0;
    left.each(|(cell, made)| {
        let made = *made.lock().unwrap();
        assert_eq!(made, usize::from(cell.get().is_some()), "initialised more than once");
        unmade += usize::from(made == 0);
        assert_eq!(cell.set(99).is_ok(), made == 0, "the permit to initialise is still held");
    });
    assert!(unmade > 0, "some runs were stopped before");
}

#[test]
fn a_oneshot_message_is_received_or_still_there_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_inner_stops(|| {
        let slot = left.add((StdMutex::new((false, 0)), StdMutex::new(None)));
        let (sender, receiver) = oneshot::channel();
        *slot.1.lock().unwrap() = Some(receiver);
        async move {
            scope(async |s| {
                let sent = slot.clone();
                s.spawn(async move {
                    checkpoint().await;
                    sent.0.lock().unwrap().0 = sender.send(7).is_ok();
                });
                s.spawn(async move {
                    let mut receiver = slot.1.lock().unwrap().take().unwrap();
                    let received = catch_stopped(receiver.recv()).await;
                    slot.0.lock().unwrap().1 += u32::from(received == Ok(Some(7)));
                    *slot.1.lock().unwrap() = Some(receiver);
                });
            })
            .await;
        }
    });
    assert!(
        exploration.ended(Ended::Stopped) > 0 && exploration.inner_runs().len() > at_least(20),
        "{exploration}"
    );
    let mut still_there = 0;
    left.each(|(count, receiver)| {
        let (sent, mut received) = *count.lock().unwrap();
        if let Some(receiver) = &mut *receiver.lock().unwrap() {
            let rest = u32::from(receiver.try_recv().is_ok());
            still_there += rest;
            received += rest;
        }
        assert_eq!(received, u32::from(sent), "a sent message must be received once");
    });
    assert!(still_there > 0, "some runs were stopped before they received");
}

#[test]
fn the_latest_value_is_seen_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_inner_stops(|| {
        let (sender, receiver) = watch::channel(0);
        let slot = left.add((receiver.clone(), StdMutex::new(Vec::new()), StdMutex::new(0)));
        async move {
            scope(async |s| {
                for _ in 0..2 {
                    let (mut receiver, slot) = (receiver.clone(), slot.clone());
                    s.spawn(async move {
                        let mut before = 0;
                        while receiver.changed().await.is_ok() {
                            let seen = *receiver.borrow();
                            assert!(seen > before, "a value was seen twice, or an older one");
                            before = seen;
                        }
                        // `changed` has reported the end, so the last value was seen.
                        slot.1.lock().unwrap().push(before);
                    });
                }
                for value in 1..=3 {
                    sender.send(value).expect("there are receivers");
                    *slot.2.lock().unwrap() = value;
                    checkpoint().await;
                }
                drop(sender);
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(3), "{exploration}");
    left.each(|(receiver, seen, last)| {
        let last = *last.lock().unwrap();
        assert_eq!(*receiver.borrow(), last);
        assert!(
            seen.lock().unwrap().iter().all(|seen| *seen == last),
            "the last value is seen before the end"
        );
    });
}

#[test]
fn every_broadcast_message_reaches_all_receivers_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_inner_stops(|| {
        let (sender, receiver) = lossless_broadcast::channel(1);
        // The number of sent messages, and what the receivers that ran to the end received.
        let slot = left.add((StdMutex::new(0), StdMutex::new(Vec::new())));
        async move {
            scope(async |s| {
                for _ in 0..2 {
                    let (mut receiver, slot) = (receiver.clone(), slot.clone());
                    s.spawn(async move {
                        let mut seen = Vec::new();
                        while let Some(message) = receiver.recv().await {
                            seen.push(message);
                        }
                        slot.1.lock().unwrap().push(seen);
                    });
                }
                drop(receiver);
                for message in 0..4 {
                    if sender.send(message).await.is_err() {
                        break;
                    }
                    *slot.0.lock().unwrap() = message + 1;
                }
                drop(sender);
            })
            .await;
        }
    });
    assert!(exploration.ended(Ended::Stopped) > at_least(3), "{exploration}");
    left.each(|(sent, all_seen)| {
        let sent: u32 = *sent.lock().unwrap();
        for seen in &*all_seen.lock().unwrap() {
            assert!(seen.len() as u32 >= sent, "{sent} were sent, and these received: {seen:?}");
            assert_eq!(*seen, (0..seen.len() as u32).collect::<Vec<_>>(), "out of order, or received twice");
        }
    });
}

#[test]
fn no_read_lock_stays_held_wherever_a_stop_comes() {
    let left = Left::new();
    explore_inner_stops(|| {
        let lock = left.add(RwLock::new(0));
        async move {
            scope(async |s| {
                for n in 0..5 {
                    let lock = lock.clone();
                    s.spawn(async move {
                        if n == 2 {
                            let mut guard = lock.write().await;
                            checkpoint().await;
                            *guard += 1;
                            let _reads_on = guard.downgrade();
                            checkpoint().await;
                        } else {
                            let _read = lock.read().await;
                            checkpoint().await;
                        }
                    });
                }
            })
            .await;
        }
    });
    left.each(|lock| assert!(lock.try_write().is_some_and(|value| *value <= 1)));
}
