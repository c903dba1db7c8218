//! Models of permits that are released while a wait for them starts or is dropped.

#![allow(unsafe_code)]
use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::{UnsafeCell, thread};
use convoke_sync::{Event, Mutex, OwnedPermit, RwLock, Semaphore};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

fn acquire(semaphore: &Arc<Semaphore>) -> ByHand<'static, OwnedPermit> {
    ByHand::new(semaphore.acquire_owned())
}

#[test]
fn a_permit_that_is_given_back_while_one_begins_to_wait_is_his() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.try_acquire_many_owned(1).unwrap();
        let gives_back = thread::spawn(move || drop(held));
        let mut waits = acquire(&semaphore);
        let permit = waits.poll();
        gives_back.join().unwrap();
        AT_ONCE.here_if(permit.is_some());
        WOKEN.here_if(permit.is_none());
        let permit = permit.unwrap_or_else(|| waits.finish());
        assert_eq!(semaphore.available(), 0);
        drop(permit);
        assert_eq!(semaphore.available(), 1);
        assert!(semaphore.try_acquire().is_some(), "nobody waits any more");
    });
    AT_ONCE.assert("it was given back before the other waited");
    WOKEN.assert("the other waited, and was woken");
}

#[test]
fn a_permit_that_is_given_back_while_the_first_goes_is_the_seconds() {
    static HANDED_ON: Reached = Reached::new();
    static GONE_BEFORE: Reached = Reached::new();
    explore(3, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.try_acquire_many_owned(1).unwrap();
        let (mut first, mut second) = (acquire(&semaphore), acquire(&semaphore));
        assert!(first.poll().is_none() && second.poll().is_none());
        let goes = thread::spawn(move || {
            let wakes = first.wakes();
            drop(first);
            wakes
        });
        drop(held);
        let handed_on = goes.join().unwrap() == 1;
        HANDED_ON.here_if(handed_on);
        GONE_BEFORE.here_if(!handed_on);
        drop(second.finish());
        assert_eq!(semaphore.available(), 1);
        assert!(semaphore.try_acquire().is_some());
    });
    HANDED_ON.assert("the first was handed it, and handed it on");
    GONE_BEFORE.assert("the first had gone");
}

#[test]
fn one_who_wants_many_goes_while_permits_come_and_who_wants_few_is_served() {
    explore(3, || {
        let semaphore = Arc::new(Semaphore::new(2));
        let (one, other) =
            (semaphore.try_acquire_many_owned(1).unwrap(), semaphore.try_acquire_many_owned(1).unwrap());
        let mut greedy = ByHand::new(semaphore.acquire_many_owned(2));
        let mut modest = acquire(&semaphore);
        assert!(greedy.poll().is_none() && modest.poll().is_none());
        let goes = thread::spawn(move || drop(greedy));
        drop(one);
        goes.join().unwrap();
        drop(modest.finish());
        drop(other);
        assert_eq!(semaphore.available(), 2);
    });
}

#[test]
fn two_who_lock_at_once_are_alone_at_the_value_and_see_what_the_other_did() {
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let shared = Arc::new(Guarded((Mutex::new(()), UnsafeCell::new(0))));
        let touch = |shared: &(Mutex<()>, UnsafeCell<u32>)| {
            let mut lock = ByHand::new(shared.0.lock());
            let guard = loop {
                match lock.poll() {
                    Some(guard) => break guard,
                    None => {
                        WAITED.here();
                        while lock.wakes() == 0 {
                            thread::yield_now();
                        }
                    }
                }
            };
            // SAFETY: the lock is held; loom checks that this is enough.
            shared.1.with_mut(|value| unsafe { *value += 1 });
            drop(guard);
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || touch(shared.get()))
        };
        touch(shared.get());
        other.join().unwrap();
        // SAFETY: the other thread has been joined.
        assert_eq!(shared.get().1.with(|value| unsafe { *value }), 2);
    });
    WAITED.assert("one of them waited");
}

/// A cell that is accessed under a lock beside it.
struct Guarded<T>(T);

// SAFETY: the cell in it is accessed only under the lock, which loom checks.
unsafe impl<T> Send for Guarded<T> {}
// SAFETY: the cell in it is accessed only under the lock, which loom checks.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

#[test]
fn a_writer_comes_in_when_readers_on_two_threads_have_left() {
    explore(3, || {
        let lock = Arc::new(RwLock::new(0));
        let leaves = {
            let lock = lock.clone();
            thread::spawn(move || drop(lock.try_read()))
        };
        let read = lock.try_read();
        let mut write = ByHand::new(async { *lock.write().await += 1 });
        let at_once = write.poll().is_some();
        assert!(read.is_none() || !at_once);
        drop(read);
        leaves.join().unwrap();
        if !at_once {
            write.finish();
        } else {
            drop(write);
        }
        assert_eq!(*lock.try_read().expect("nobody writes"), 1);
    });
}

#[test]
fn a_reader_that_comes_beside_a_writer_reads_before_or_after_it() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let lock = Arc::new(RwLock::new(0));
        let writes = {
            let lock = lock.clone();
            thread::spawn(move || {
                let mut guard = lock.try_write();
                if let Some(guard) = &mut guard {
                    **guard = 1;
                }
                guard.is_some()
            })
        };
        let mut read = ByHand::new(async { *lock.read().await });
        let at_once = read.poll();
        let wrote = writes.join().unwrap();
        WAITED.here_if(at_once.is_none());
        let value = at_once.unwrap_or_else(|| read.finish());
        BEFORE.here_if(wrote && value == 0);
        AFTER.here_if(wrote && value == 1);
    });
    BEFORE.assert("it read before");
    AFTER.assert("it read after");
    WAITED.assert("it waited for the writer");
}

#[test]
fn a_writer_that_waits_and_goes_lets_the_readers_behind_it_in() {
    explore(3, || {
        let lock = Arc::new(RwLock::new(0));
        let reads = lock.try_read().unwrap();
        let writer = lock.clone();
        let mut writer = ByHand::new(async move { *writer.write().await += 1 });
        let mut behind = ByHand::new(async { *lock.read().await });
        assert!(writer.poll().is_none() && behind.poll().is_none());
        let goes = thread::spawn(move || drop(writer));
        drop(reads);
        goes.join().unwrap();
        assert_eq!(behind.finish(), 0, "the writer has gone, or has been let in and gone");
        assert!(lock.try_write().is_some(), "nobody is inside");
    });
}

#[test]
fn an_event_that_is_set_while_one_begins_to_wait_is_heard() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let event = Arc::new(Event::new());
        let sets = {
            let event = event.clone();
            thread::spawn(move || {
                event.set();
                event.reset();
            })
        };
        let mut waits = ByHand::new(event.wait());
        let at_once = waits.poll().is_some();
        sets.join().unwrap();
        if at_once {
            AT_ONCE.here();
        } else if waits.wakes() == 1 {
            WOKEN.here();
            waits.finish();
        } else {
            // The wait started after the event was set and reset.
            assert_eq!(waits.poll(), None);
        }
    });
    AT_ONCE.assert("it was set");
    WOKEN.assert("it waited, and was woken, also if the event was reset meanwhile");
}
