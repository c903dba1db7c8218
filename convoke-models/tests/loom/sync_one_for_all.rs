//! Models of primitives with one result for all waiters: a barrier, a value that is created once, a watched
//! value, a broadcast, a oneshot message.
use std::sync::Arc;

use crate::model::{Count, Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_sync::{Barrier, Met, OnceCell, lossless_broadcast, oneshot, watch};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

fn come(barrier: &Arc<Barrier>) -> ByHand<'static, Met> {
    let barrier = barrier.clone();
    ByHand::new(async move { barrier.wait().await })
}

#[test]
fn two_who_come_at_once_meet_and_one_of_them_leads() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    explore(3, || {
        let barrier = Arc::new(Barrier::new(2));
        let other = barrier.clone();
        let other = thread::spawn(move || come(&other).wait().is_leader());
        let here = come(&barrier).wait().is_leader();
        let there = other.join().unwrap();
        assert_ne!(here, there, "one of them");
        FIRST.here_if(here);
        SECOND.here_if(there);
    });
    FIRST.assert("this one came last");
    SECOND.assert("the other one came last");
}

#[test]
fn one_who_leaves_a_barrier_while_the_last_comes_has_met_or_is_not_counted() {
    static MET: Reached = Reached::new();
    static GONE: Reached = Reached::new();
    explore(3, || {
        let barrier = Arc::new(Barrier::new(2));
        let mut first = come(&barrier);
        assert!(first.poll().is_none());
        let goes = thread::spawn(move || drop(first));
        let mut second = come(&barrier);
        let met = second.poll();
        goes.join().unwrap();
        let mut third = come(&barrier);
        if met.is_some() {
            MET.here();
            assert!(third.poll().is_none(), "nobody is counted for the next meeting");
        } else {
            GONE.here();
            assert!(third.poll().expect("two are there").is_leader());
            assert!(!second.finish().is_leader());
        }
    });
    MET.assert("they met");
    GONE.assert("the first had gone");
}

#[test]
fn two_who_need_a_value_at_once_make_it_once() {
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let (cell, made) = (Arc::new(OnceCell::new()), Count::default());
        let get = |cell: &OnceCell<u32>, made: &Count| {
            let mut gets = ByHand::new(cell.get_or_init(|| async {
                made.add();
                // Lets the other thread run in between.
                thread::yield_now();
                7
            }));
            match gets.poll() {
                Some(value) => *value,
                None => {
                    WAITED.here();
                    *gets.wait()
                }
            }
        };
        let (other, counts) = (cell.clone(), made.clone());
        let other = thread::spawn(move || get(&other, &counts));
        assert_eq!(get(&cell, &made), 7);
        assert_eq!(other.join().unwrap(), 7);
        assert_eq!(made.get(), 1, "once");
    });
    WAITED.assert("one of them waited for the other");
}

#[test]
fn a_value_is_made_by_the_next_when_the_one_who_makes_it_goes() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let cell = Arc::new(OnceCell::new());
        let makes = cell.clone();
        let mut makes = ByHand::new(async move {
            makes.get_or_init(std::future::pending::<u32>).await;
        });
        assert!(makes.poll().is_none());
        let goes = thread::spawn(move || drop(makes));
        let mut next = ByHand::new(cell.get_or_init(|| async { 7 }));
        let value = next.poll();
        goes.join().unwrap();
        AT_ONCE.here_if(value.is_some());
        WOKEN.here_if(value.is_none());
        assert_eq!(value.unwrap_or_else(|| next.finish()), &7);
    });
    AT_ONCE.assert("it was its turn at once");
    WOKEN.assert("it was handed the turn");
}

#[test]
fn one_who_waits_for_a_value_hears_that_it_was_made() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let cell = Arc::new(OnceCell::new());
        let sets = cell.clone();
        let sets = thread::spawn(move || sets.set(7).unwrap());
        let mut waits = ByHand::new(cell.wait());
        let value = waits.poll();
        sets.join().unwrap();
        AT_ONCE.here_if(value.is_some());
        WOKEN.here_if(value.is_none());
        assert_eq!(value.unwrap_or_else(|| waits.finish()), &7);
    });
    AT_ONCE.assert("it was there");
    WOKEN.assert("it was waited for");
}

#[test]
fn a_value_that_changes_while_one_begins_to_wait_is_seen() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = watch::channel(0);
        let changes = thread::spawn(move || {
            sender.send(1).unwrap();
            sender
        });
        let mut waits = ByHand::new(receiver.changed());
        let changed = waits.poll();
        let sender = changes.join().unwrap();
        AT_ONCE.here_if(changed.is_some());
        WOKEN.here_if(changed.is_none());
        assert_eq!(changed.unwrap_or_else(|| waits.finish()), Ok(()));
        assert_eq!(*receiver.borrow(), 1);
        assert!(!receiver.has_changed(), "once");
        drop(sender);
    });
    AT_ONCE.assert("it had changed");
    WOKEN.assert("it was waited for");
}

#[test]
fn the_last_value_is_seen_before_the_end_of_a_watch() {
    static BOTH: Reached = Reached::new();
    static ONE_BY_ONE: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = watch::channel(0);
        let changes = thread::spawn(move || {
            sender.send(1).unwrap();
            drop(sender);
        });
        let at_once = {
            let mut waits = ByHand::new(receiver.changed());
            let changed = waits.poll();
            let at_once = changed.is_some();
            assert_eq!(changed.unwrap_or_else(|| waits.wait()), Ok(()), "the change comes first");
            at_once
        };
        BOTH.here_if(at_once);
        ONE_BY_ONE.here_if(!at_once);
        assert_eq!(*receiver.borrow(), 1);
        assert_eq!(ByHand::new(receiver.changed()).wait(), Err(watch::Closed));
        changes.join().unwrap();
    });
    BOTH.assert("it had changed");
    ONE_BY_ONE.assert("it was waited for");
}

#[test]
fn a_message_for_all_comes_while_one_begins_to_wait() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = lossless_broadcast::channel(1);
        let mut other = receiver.clone();
        let sends = thread::spawn(move || {
            sender.try_send(7).unwrap();
            sender
        });
        let mut waits = ByHand::new(receiver.recv());
        let received = waits.poll();
        let _sender = sends.join().unwrap();
        AT_ONCE.here_if(received.is_some());
        WOKEN.here_if(received.is_none());
        assert_eq!(received.unwrap_or_else(|| waits.finish()), Some(7));
        assert_eq!(other.try_recv(), Ok(7), "for all");
    });
    AT_ONCE.assert("it was there");
    WOKEN.assert("it was waited for");
}

#[test]
fn who_sends_to_all_is_told_when_the_slowest_has_received_or_gone() {
    static GOES_LAST: Reached = Reached::new();
    static RECEIVES_LAST: Reached = Reached::new();
    explore(3, || {
        let (sender, mut receiver) = lossless_broadcast::channel(1);
        let goes = receiver.clone();
        sender.try_send(1).unwrap();
        let mut sends = ByHand::new(async move { sender.send(2).await.map(|()| sender) });
        assert!(sends.poll().is_none(), "there is no room");
        let leaves = thread::spawn(move || drop(goes));
        assert_eq!(receiver.try_recv(), Ok(1));
        let told = sends.wakes() > 0;
        leaves.join().unwrap();
        RECEIVES_LAST.here_if(told);
        GOES_LAST.here_if(!told);
        let _sender = sends.finish().expect("somebody listens");
        assert_eq!(receiver.try_recv(), Ok(2));
    });
    GOES_LAST.assert("the other one went when this one had received");
    RECEIVES_LAST.assert("the other one had gone");
}

#[test]
fn a_sender_learns_that_no_receiver_waits_any_more() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let (mut sender, receiver) = oneshot::channel::<u8>();
        let goes = thread::spawn(move || drop(receiver));
        let mut waits = ByHand::new(sender.closed());
        let closed = waits.poll();
        goes.join().unwrap();
        AT_ONCE.here_if(closed.is_some());
        WOKEN.here_if(closed.is_none());
        closed.unwrap_or_else(|| waits.finish());
    });
    AT_ONCE.assert("it had gone");
    WOKEN.assert("it went");
}
