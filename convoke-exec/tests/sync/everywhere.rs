//! A stop at every point of programs that use all of it: no permit and no message is lost, and nothing is delivered twice.

use std::sync::{Arc, Mutex as StdMutex};

use convoke::prelude::*;
use convoke::sync::{Barrier, Mutex, RwLock, Semaphore, broadcast, mpmc, mpsc};
use convoke::testing::{Ended, explore_stops};

/// What one run of a program leaves behind, to be looked at after the exploration.
struct Left<T>(StdMutex<Vec<Arc<T>>>);

impl<T> Left<T> {
    fn new() -> Self {
        Self(StdMutex::default())
    }

    fn keep(&self, left: T) -> Arc<T> {
        let left = Arc::new(left);
        self.0.lock().unwrap().push(left.clone());
        left
    }

    fn each(&self, mut look: impl FnMut(&T)) {
        let all = self.0.lock().unwrap();
        assert!(all.len() > 5, "it was stopped at some points");
        all.iter().for_each(|left| look(left));
    }
}

#[test]
fn no_permit_is_lost_wherever_a_stop_comes() {
    let left = Left::new();
    let exploration = explore_stops(|| {
        let semaphore = left.keep(Semaphore::new(3));
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
    assert!(exploration.ended(Ended::Stopped) > 5, "{exploration}");
    left.each(|semaphore| assert_eq!(semaphore.available(), 3));
}

#[test]
fn no_lock_stays_locked_wherever_a_stop_comes() {
    let left = Left::new();
    explore_stops(|| {
        let locks = left.keep((Mutex::new(0), RwLock::new(0)));
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

/// What was sent for certain, and what was received.
#[derive(Default)]
struct Ledger {
    sent: StdMutex<Vec<u32>>,
    received: StdMutex<Vec<u32>>,
}

impl Ledger {
    /// `rest` was still in the channel.
    fn check(&self, rest: impl IntoIterator<Item = u32>) {
        let mut received = self.received.lock().unwrap().clone();
        received.extend(rest);
        let arrived = received.len();
        received.sort_unstable();
        received.dedup();
        assert_eq!(received.len(), arrived, "nothing arrives twice");
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
        let left = left.keep((Ledger::default(), receiver.clone()));
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
                            // One of them is impatient, and gives up waiting again and again.
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

/// The one receiver, put away for the test when the task that has it ends.
struct PutAway {
    receiver: Option<mpsc::Receiver<u32>>,
    place: Arc<(Ledger, StdMutex<Option<mpsc::Receiver<u32>>>)>,
}

impl Drop for PutAway {
    fn drop(&mut self) {
        *self.place.1.lock().unwrap() = self.receiver.take();
    }
}

#[test]
fn no_message_is_lost_on_the_way_to_one_wherever_a_stop_comes() {
    let left = Left::new();
    explore_stops(|| {
        let (sender, receiver) = mpsc::channel(1);
        let place = left.keep((Ledger::default(), StdMutex::new(None)));
        let mut end = PutAway { receiver: Some(receiver), place: place.clone() };
        let sends = |number: u32| {
            let (place, sender) = (place.clone(), sender.clone());
            async move {
                for message in number * 10..number * 10 + 4 {
                    if sender.send(message).await.is_ok() {
                        place.0.sent.lock().unwrap().push(message);
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
                place.0.received.lock().unwrap().push(message);
            }
        };
        // All in one task: a stop meets a receiver that was given a message and does not know it yet.
        async move {
            join((receives, one, other)).await;
        }
    });
    left.each(|(ledger, receiver)| {
        let mut receiver = receiver.lock().unwrap();
        let receiver = receiver.as_mut().expect("it was put away");
        ledger.check(std::iter::from_fn(|| receiver.try_recv().ok()));
    });
}

#[test]
fn barrier_and_broadcast_come_home_wherever_a_stop_comes() {
    let exploration = explore_stops(|| async {
        scope(async |s| {
            let barrier = Arc::new(Barrier::new(3));
            let (sender, receiver) = broadcast::channel(2);
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
                sender.send(message).await.expect("they listen");
            }
        })
        .await;
    });
    assert!(exploration.ended(Ended::Stopped) > 5, "{exploration}");
}
