//! Tests of semaphore, mutex and read-write lock.

use std::sync::Arc;
use std::thread;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{Mutex, RwLock, Semaphore};

use crate::sync::polled::{ready, waits};

#[test]
fn permits_are_granted_in_order_and_nothing_overtakes() {
    let semaphore = Semaphore::new(1);
    let held = ready(semaphore.acquire());
    let mut first = waits(semaphore.acquire());
    let mut second = waits(semaphore.acquire());
    drop(held);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(semaphore.available(), 0, "the permit already belongs to the first waiter");
    assert!(semaphore.try_acquire().is_none());
    assert!(second.poll().is_none());
    let held = first.poll().unwrap();
    drop(held);
    drop(second.poll().unwrap());
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn a_permit_granted_to_a_dropped_acquire_goes_to_the_next() {
    let semaphore = Semaphore::new(1);
    let held = ready(semaphore.acquire());
    let (first, mut second) = (waits(semaphore.acquire()), waits(semaphore.acquire()));
    drop(held);
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second.poll().unwrap());
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn a_request_for_many_is_not_starved_and_unblocks_others_when_dropped() {
    let semaphore = Semaphore::new(2);
    let held = ready(semaphore.acquire());
    let greedy = waits(semaphore.acquire_many(2));
    let mut modest = waits(semaphore.acquire());
    assert!(semaphore.try_acquire().is_none(), "a permit is free, but a task waits");
    drop(greedy);
    assert_eq!(modest.wakes(), 1);
    drop((modest.poll().unwrap(), held));
    assert_eq!(semaphore.available(), 2);
}

#[test]
fn one_release_grants_as_many_waiters_as_it_can() {
    let semaphore = Semaphore::new(3);
    let all = ready(semaphore.acquire_many(3));
    let mut waiting: Vec<_> = (0..4).map(|_| waits(semaphore.acquire())).collect();
    drop(all);
    let served: Vec<_> = waiting.iter_mut().map(|waiting| waiting.poll()).collect();
    assert_eq!(served.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn permits_can_be_added_and_forgotten() {
    let semaphore = Arc::new(Semaphore::new(0));
    let mut waiting = waits(semaphore.acquire_owned());
    semaphore.add_permits(2);
    waiting.poll().unwrap().forget();
    assert_eq!(semaphore.available(), 1);
    semaphore.try_acquire().unwrap().forget();
    assert_eq!(semaphore.available(), 0);
    let too_many = std::panic::catch_unwind(|| semaphore.add_permits(usize::MAX));
    assert!(too_many.is_err());
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn a_mutex_can_be_a_static_and_its_guard_can_move_to_another_thread() {
    static COUNT: Mutex<u32> = Mutex::new(0);
    let mut guard = COUNT.try_lock().unwrap();
    assert!(COUNT.try_lock().is_none());
    thread::scope(|s| s.spawn(move || *guard += 1).join().unwrap());
    assert_eq!(*COUNT.try_lock().unwrap(), 1);
    let unsized_too: &Mutex<[u8]> = &Mutex::new([1, 2]);
    assert_eq!(unsized_too.try_lock().unwrap().len(), 2);
}

#[test]
fn a_mutex_is_not_poisoned_by_a_panic() {
    let mutex = Mutex::new(1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut guard = mutex.try_lock().unwrap();
        *guard = 2;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn readers_share_and_a_reader_after_a_writer_waits_behind_it() {
    let lock = RwLock::new(0);
    let (one, two) = (ready(lock.read()), ready(lock.read()));
    let mut writer = waits(lock.write());
    let mut late = waits(lock.read());
    drop(one);
    assert_eq!(writer.wakes(), 0);
    drop(two);
    let mut guard = writer.poll().unwrap();
    assert!(late.poll().is_none());
    *guard = 1;
    let guard = guard.downgrade();
    assert_eq!((*late.poll().unwrap(), *guard), (1, 1));
    assert!(lock.try_write().is_none());
    drop((guard, late, writer));
    assert!(lock.try_write().is_some());
}

#[test]
fn a_mutex_on_two_threads_loses_no_increment() {
    const EACH: u64 = if cfg!(miri) { 10 } else { 2_000 };
    let pool = ThreadPool::new(2).unwrap();
    let count = Arc::new(Mutex::new(0_u64));
    let counted = count.clone();
    let work = task(async move {
        scope(async |s| {
            for _ in 0..4 {
                let count = counted.clone();
                s.spawn(async move {
                    for round in 0..EACH {
                        let mut count = count.lock().await;
                        if round % 7 == 0 {
                            checkpoint().await;
                        }
                        *count += 1;
                    }
                });
            }
        })
        .await;
    });
    sync_wait(pool.executor().schedule().let_value(move |()| work)).unwrap();
    assert_eq!(*count.try_lock().unwrap(), 4 * EACH);
}

#[test]
fn permits_that_come_back_to_as_many_as_there_can_be_are_not_more() {
    let semaphore = Semaphore::new(Semaphore::MOST);
    let held = semaphore.try_acquire_many(5).unwrap();
    semaphore.add_permits(3);
    drop(held);
    assert_eq!(semaphore.available(), Semaphore::MOST);
    assert!(semaphore.try_acquire_many(Semaphore::MOST).is_some());
}
