//! Correct programs: they are checked after every step, and nothing is reported.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use convoke::executor::RunLoop;
use convoke::inspect::Diagnosis;
use convoke::prelude::*;
use convoke::sync::{Event, Mutex, RwLock, Semaphore, mpsc};
use convoke::task::for_each_concurrent;

use crate::diagnosis::programs::{Checker, first_of};

/// Runs a program step by step. Each check advances the clock by a second; no wait lasts for the deadlock
/// limit.
fn nothing_is_said_of<P>(program: P)
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let diagnosis = Diagnosis::new().every_lock(true).deadlock_limit(Duration::from_secs(100_000));
    let mut checker = Checker::new(diagnosis.by_hand());
    let run_loop = RunLoop::new();
    let launched = launch(&run_loop.executor()).start(program);
    while run_loop.run_one() {
        let reports = checker.now();
        assert!(reports.is_empty(), "{}", reports[0]);
    }
    assert!(launched.is_finished(), "it has come to its end");
    drop(launched.wait());
}

#[test]
fn many_who_want_one_lock() {
    nothing_is_said_of(async {
        let lock = Arc::new(Mutex::new(0));
        scope(async |s| {
            for _ in 0..4 {
                let lock = lock.clone();
                s.spawn(async move {
                    for _ in 0..3 {
                        let mut count = lock.lock().await;
                        checkpoint().await;
                        *count += 1;
                    }
                });
            }
        })
        .await;
        assert_eq!(*lock.lock().await, 12);
    });
}

#[test]
fn branches_of_one_task_that_want_one_lock_and_are_all_polled() {
    nothing_is_said_of(async {
        let lock = Mutex::new(());
        let locker = || async {
            for _ in 0..3 {
                let _guard = lock.lock().await;
                checkpoint().await;
            }
        };
        join((locker(), locker(), locker())).await;
        join(vec![locker(), locker(), locker()]).await;
        for_each_concurrent(0..6, 3, |_| locker()).await;
    });
}

#[test]
fn a_future_that_is_set_aside_and_polled_again_before_anybody_waits_for_it() {
    nothing_is_said_of(async {
        let (lock, event) = (Mutex::new(()), Event::new());
        let held = lock.lock().await;
        let mut aside = pin!(lock.lock());
        event.set();
        first_of(aside.as_mut(), pin!(event.wait())).await;
        drop(held);
        checkpoint().await;
        checkpoint().await;
        drop(aside.await);
        drop(lock.lock().await);
    });
}

#[test]
fn one_that_gives_up_in_time_passes_on_what_it_was_handed() {
    nothing_is_said_of(async {
        let (lock, event) = (Mutex::new(()), Event::new());
        let held = lock.lock().await;
        event.set();
        {
            let mut aside = pin!(lock.lock());
            first_of(aside.as_mut(), pin!(event.wait())).await;
            drop(held);
            checkpoint().await;
        }
        drop(lock.lock().await);
    });
}

#[test]
fn readers_writers_permits_and_messages() {
    nothing_is_said_of(async {
        let (prices, permits) = (Arc::new(RwLock::new(1)), Arc::new(Semaphore::new(2)));
        let (sender, mut receiver) = mpsc::channel(1);
        scope(async |s| {
            for number in 0..4 {
                let (prices, permits, sender) = (prices.clone(), permits.clone(), sender.clone());
                s.spawn(async move {
                    let permit = permits.acquire_many_owned(1 + number % 2).await;
                    let price = *prices.read().await;
                    checkpoint().await;
                    *prices.write().await = price + 1;
                    sender.send(price).await.unwrap();
                    drop(permit);
                });
            }
            drop(sender);
            while receiver.recv().await.is_some() {}
        })
        .await;
    });
}

#[test]
fn guards_that_are_given_back_by_others_than_took_them() {
    nothing_is_said_of(async {
        let lock = Arc::new(Mutex::new(()));
        scope(async |s| {
            for _ in 0..3 {
                let guard = lock.lock_owned().await;
                s.spawn(async move {
                    checkpoint().await;
                    drop(guard);
                });
            }
        })
        .await;
        drop(lock.lock().await);
    });
}

#[test]
fn those_who_are_stopped_while_they_wait() {
    nothing_is_said_of(async {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().await;
        scope(async |s| {
            let waiting = lock.clone();
            let handle = s.spawn_future(async move { drop(waiting.lock().await) });
            checkpoint().await;
            drop(handle);
            checkpoint().await;
            drop(held);
        })
        .await;
        drop(lock.lock().await);
    });
}
