//! Models of what runs together in one task: a flag that rings while its owner is about to wait, and an alarm that rings
//! while it is dropped, or given another waker.
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use crate::model::{Reached, explore};
use crate::still_clock::StillClock;
use convoke_core::ExecutorRef;
use convoke_core::raw::FrameMemory;
use convoke_core::raw::sync::thread;
use convoke_exec::raw::{Alarm, When};
use convoke_task::raw::{Key, WakeSet};

/// A waker that counts its calls. The count is checked after the threads are joined.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn waker() -> (std::sync::Arc<Self>, Waker) {
        let count = std::sync::Arc::new(Self::default());
        (count.clone(), Waker::from(count))
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_flag_that_is_set_is_seen_once_whenever_its_owner_waits() {
    static IN_ROUND: Reached = Reached::new();
    static BEFORE_THE_WAIT: Reached = Reached::new();
    static WHILE_IT_WAITS: Reached = Reached::new();
    const CHILD: Key = Key { index: 7, serial: 1 };
    explore(3, || {
        let wake_set = WakeSet::new();
        let flag = wake_set.flag(CHILD);
        // Its child is polled a first time.
        flag.clear();
        let rings = {
            let flag = flag.clone();
            thread::spawn(move || flag.set())
        };
        let (count, waker) = Count::waker();
        let mut round = FrameMemory::vec_in_task();
        wake_set.take_woken(&mut round);
        let polled = round.pop() == Some(CHILD);
        if polled {
            flag.clear();
        }
        wake_set.wait(&waker);
        let at_once = count.get() == 1;
        rings.join().unwrap();
        assert_eq!(usize::from(polled) + count.get(), 1, "heard, and once");
        wake_set.take_woken(&mut round);
        assert_eq!(round.len(), usize::from(!polled), "in the set once");
        IN_ROUND.here_if(polled);
        BEFORE_THE_WAIT.here_if(at_once);
        WHILE_IT_WAITS.here_if(!polled && !at_once);
    });
    IN_ROUND.assert("it rang before its owner looked");
    BEFORE_THE_WAIT.assert("it rang between looking and waiting");
    WHILE_IT_WAITS.assert("it rang while its owner waited");
}

#[test]
fn of_two_flags_that_are_set_at_once_the_owner_is_woken_by_one_and_sees_both() {
    explore(3, || {
        let wake_set = WakeSet::new();
        let (count, waker) = Count::waker();
        let rings = [1, 2].map(|index| {
            let flag = wake_set.flag(Key { index, serial: 0 });
            flag.clear();
            flag
        });
        wake_set.wait(&waker);
        let threads = rings.map(|flag| thread::spawn(move || flag.set()));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.get(), 1);
        let mut round = FrameMemory::vec_in_task();
        wake_set.take_woken(&mut round);
        let mut indexes: Vec<_> = round.into_iter().map(|key: Key| key.index).collect();
        indexes.sort_unstable();
        assert_eq!(indexes, [1, 2]);
    });
}

/// Returns an armed alarm, its time, and its clock.
fn set(waker: &Waker) -> (Pin<Box<Alarm>>, Instant, StillClock) {
    let clock = StillClock::new();
    let alarm = Box::pin(Alarm::new());
    let now = alarm.as_ref().now(&ExecutorRef::new(clock.clone()));
    let at = now + Duration::from_secs(1);
    assert!(!alarm.as_ref().poll(at, &Context::from_waker(waker)));
    (alarm, at, clock)
}

#[test]
fn an_alarm_that_is_dropped_while_it_rings_is_not_touched_any_more() {
    static RANG: Reached = Reached::new();
    static SILENT: Reached = Reached::new();
    explore(3, || {
        let (count, waker) = Count::waker();
        let (alarm, at, clock) = set(&waker);
        let calls = clock.time_comes(at);
        drop(alarm);
        let called = calls.join().unwrap();
        assert_eq!(called, count.get());
        RANG.here_if(called == 1);
        SILENT.here_if(called == 0);
    });
    RANG.assert("it rang before it was dropped");
    SILENT.assert("it was dropped before it rang");
}

#[test]
fn an_alarm_that_is_given_another_waker_wakes_one_of_them_and_is_due() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    explore(3, || {
        let (first, waker) = Count::waker();
        let (second, other) = Count::waker();
        let (alarm, at, clock) = set(&waker);
        let calls = clock.time_comes(at);
        let due = alarm.as_ref().poll(at, &Context::from_waker(&other));
        calls.join().unwrap();
        // Another waker means another arming, and arming the earliest alarm ensures another check of the
        // queue.
        clock.call_due(at);
        assert_eq!((first.get(), second.get()), if due { (1, 0) } else { (0, 1) });
        assert!(alarm.is_due());
        FIRST.here_if(due);
        SECOND.here_if(!due);
    });
    FIRST.assert("it rang before it was polled again");
    SECOND.assert("it rang afterwards");
}

#[test]
fn an_alarm_that_is_moved_while_it_rings_rings_once_at_one_of_its_times() {
    static MOVED: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(3, || {
        let (count, waker) = Count::waker();
        let (alarm, at, clock) = set(&waker);
        let later = at + Duration::from_secs(1);
        let calls = clock.time_comes(at);
        let moved = alarm.as_ref().move_to(When::At(later));
        let called = calls.join().unwrap();
        assert_eq!((called, count.get()), if moved { (0, 0) } else { (1, 1) });
        assert_eq!(alarm.is_due(), !moved);
        if moved {
            assert_eq!((clock.call_due(later), count.get()), (1, 1));
        }
        assert!(alarm.is_due());
        MOVED.here_if(moved);
        TOO_LATE.here_if(!moved);
    });
    MOVED.assert("it was moved in time");
    TOO_LATE.assert("it rang before it was moved");
}

#[test]
fn an_alarm_that_is_disarmed_while_it_rings_can_be_armed_again() {
    static RANG: Reached = Reached::new();
    static SILENT: Reached = Reached::new();
    explore(3, || {
        let (first, waker) = Count::waker();
        let (second, other) = Count::waker();
        let (alarm, at, clock) = set(&waker);
        let calls = clock.time_comes(at);
        alarm.as_ref().disarm();
        assert!(!alarm.is_due());
        let called = calls.join().unwrap();
        assert_eq!(called, first.get());
        let later = at + Duration::from_secs(1);
        assert!(!alarm.as_ref().poll(later, &Context::from_waker(&other)));
        assert_eq!((clock.call_due(later), second.get()), (1, 1));
        RANG.here_if(called == 1);
        SILENT.here_if(called == 0);
    });
    RANG.assert("it rang before");
    SILENT.assert("it was disarmed in time");
}
