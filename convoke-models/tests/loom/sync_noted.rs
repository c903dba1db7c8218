//! Models of permits whose holders are recorded for a diagnosis: concurrent acquires and releases still lose
//! nothing, and the record is right at the end.
use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_inspect::diagnosis::{Diagnosis, Watcher};
use convoke_sync::{OwnedPermit, Semaphore};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

fn watch(every_lock: bool) -> Watcher {
    Diagnosis::new().every_lock(every_lock).by_hand()
}

fn acquire(semaphore: &Arc<Semaphore>) -> ByHand<'static, OwnedPermit> {
    ByHand::new(semaphore.acquire_owned())
}

#[test]
fn a_noted_permit_that_is_given_back_while_one_begins_to_wait_is_his() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    for every_lock in [false, true] {
        explore(2, move || {
            let watcher = watch(every_lock);
            let semaphore = Arc::new(Semaphore::new(1));
            let held = semaphore.try_acquire_many_owned(1).unwrap();
            let gives_back = thread::spawn(move || drop(held));
            let mut waits = acquire(&semaphore);
            let permit = waits.poll();
            gives_back.join().unwrap();
            AT_ONCE.here_if(permit.is_some());
            WOKEN.here_if(permit.is_none());
            drop(permit.unwrap_or_else(|| waits.finish()));
            assert_eq!(semaphore.available(), 1);
            assert!(semaphore.try_acquire().is_some(), "nobody waits any more");
            drop(watcher);
        });
    }
    AT_ONCE.assert("it was given back before the other waited");
    WOKEN.assert("the other waited, and was woken");
}

#[test]
fn a_noted_permit_that_is_given_back_while_the_first_goes_is_the_seconds() {
    static HANDED_ON: Reached = Reached::new();
    static GONE_BEFORE: Reached = Reached::new();
    explore(2, || {
        let watcher = watch(true);
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
        drop(watcher);
    });
    HANDED_ON.assert("the first was handed it, and handed it on");
    GONE_BEFORE.assert("the first had gone");
}

#[test]
fn the_diagnosis_ends_while_permits_are_taken_and_given_back() {
    explore(2, || {
        let watcher = watch(true);
        let semaphore = Arc::new(Semaphore::new(1));
        let other = {
            let semaphore = semaphore.clone();
            thread::spawn(move || drop(semaphore.try_acquire_many_owned(1)))
        };
        drop(watcher);
        let mut waits = acquire(&semaphore);
        let permit = waits.poll();
        other.join().unwrap();
        drop(permit.unwrap_or_else(|| waits.finish()));
        assert_eq!(semaphore.available(), 1);
        assert!(semaphore.try_acquire().is_some());
    });
}
