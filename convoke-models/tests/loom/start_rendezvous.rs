//! Work that completes on another thread while its `start` is still running, and is destroyed by its receiver.

#![allow(unsafe_code)]

use crate::model::{Reached, Seen, empty_quarantine, explore, start};
use convoke_core::raw::StartRendezvous;
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_sender::prelude::*;

#[test]
fn never_is_stopped_while_it_is_being_started() {
    static IN_START: Reached = Reached::new();
    static AFTER_START: Reached = Reached::new();
    explore(4, || {
        let (source, seen) = (StopSource::new(), Seen::default());
        let requester = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        start(never::<u32>(), &source, &seen);
        let in_start = seen.completed.get() == 1;
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.stopped.get()), (1, 1));
        IN_START.here_if(in_start);
        AFTER_START.here_if(!in_start);
        empty_quarantine();
    });
    IN_START.assert("it completed before start returned");
    AFTER_START.assert("the requester completed it");
}

#[test]
fn work_after_never_is_stopped_while_it_is_being_started() {
    static IN_START: Reached = Reached::new();
    static AFTER_START: Reached = Reached::new();
    explore(3, || {
        let (source, seen) = (StopSource::new(), Seen::default());
        let requester = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Requested))
        };
        start(never::<u32>().let_stopped(never::<u32>).let_stopped(|| just(1)), &source, &seen);
        let in_start = seen.completed.get() == 1;
        requester.join().unwrap();
        assert_eq!((seen.completed.get(), seen.stopped.get()), (1, 0));
        IN_START.here_if(in_start);
        AFTER_START.here_if(!in_start);
        empty_quarantine();
    });
    IN_START.assert("both were stopped before start returned");
    AFTER_START.assert("the requester went on from one to the other");
}

#[test]
fn the_second_to_come_sees_what_the_first_has_written() {
    static MINE: Reached = Reached::new();
    static THE_OTHERS: Reached = Reached::new();
    struct WrittenByBoth {
        rendezvous: StartRendezvous,
        written: [UnsafeCell<bool>; 2],
    }
    // SAFETY: each side writes its own cell, and the second to arrive reads both; loom checks that.
    unsafe impl Sync for WrittenByBoth {}
    // SAFETY: the cells contain flags, and loom checks each access.
    unsafe impl Send for WrittenByBoth {}
    fn arrive(shared: &WrittenByBoth, side: usize) -> bool {
        // SAFETY: the cell of this side is ours until we arrive, and both are after we arrived as the second.
        unsafe {
            shared.written[side].with_mut(|written| *written = true);
            let second = shared.rendezvous.arrive();
            if second {
                shared.written.iter().for_each(|cell| cell.with_mut(|written| assert!(*written)));
            }
            second
        }
    }
    explore(4, || {
        let shared = Arc::new(WrittenByBoth {
            rendezvous: StartRendezvous::new(),
            written: [UnsafeCell::new(false), UnsafeCell::new(false)],
        });
        let other = {
            let shared = shared.clone();
            thread::spawn(move || arrive(&shared, 0))
        };
        let mine = arrive(&shared, 1);
        assert!(mine != other.join().unwrap(), "exactly one is the second");
        MINE.here_if(mine);
        THE_OTHERS.here_if(!mine);
    });
    MINE.assert("this thread was the second");
    THE_OTHERS.assert("the other thread was the second");
}

mod gate {
    //! Rendezvous of work that may be completed or stopped.

    use convoke_sender::testing::Gate;

    use super::*;

    #[test]
    fn a_gate_opens_while_it_is_stopped_and_started() {
        static OPENED: Reached = Reached::new();
        static STOPPED: Reached = Reached::new();
        static CAME_TOO_EARLY: Reached = Reached::new();
        static IN_START: Reached = Reached::new();
        explore(3, || {
            let (source, seen) = (StopSource::new(), Seen::default());
            let gate = Gate::<u32>::new();
            let opener = {
                let gate = gate.clone();
                thread::spawn(move || gate.complete(Outcome::Value(1)))
            };
            let requester = {
                let source = source.clone();
                thread::spawn(move || source.request_stop(StopReason::Requested))
            };
            start(gate.sender(), &source, &seen);
            let in_start = seen.completed.get() == 1;
            let opened = opener.join().unwrap();
            requester.join().unwrap();
            assert_eq!(seen.completed.get(), 1);
            assert_eq!(opened, seen.stopped.get() == 0, "the one who took it completed it");
            OPENED.here_if(opened);
            STOPPED.here_if(!opened);
            IN_START.here_if(in_start && opened);
            CAME_TOO_EARLY.here_if(!opened && in_start);
            empty_quarantine();
        });
        OPENED.assert("it was opened");
        STOPPED.assert("it was stopped");
        IN_START.assert("it was opened before start returned");
        CAME_TOO_EARLY.assert("it was stopped before start returned");
    }
}
