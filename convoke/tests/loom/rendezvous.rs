//! The rendezvous of a future and the operation it awaits, in all interleavings: the outcome is taken or destroyed once, by
//! somebody who has it to himself; the waker is used by one at a time; and no wake-up is lost.

#![allow(unsafe_code)]

use crate::model::{Count, Reached, explore};
use convoke_core::raw::sync::{Arc, UnsafeCell, thread};
use convoke_core::raw::{Abandon, Complete, Peek, Rendezvous, Wait};

/// What the two share, with cells that show who is at them.
#[derive(Default)]
struct Room {
    rendezvous: Rendezvous,
    /// Written by the operation, then taken.
    outcome: UnsafeCell<Option<u32>>,
    /// The number of the waker that is in its place.
    waker: UnsafeCell<Option<u32>>,
    /// Which waker was called.
    called: [Count; 3],
    taken: Count,
}

// SAFETY: the model checks it.
unsafe impl Sync for Room {}
// SAFETY: as above.
unsafe impl Send for Room {}

impl Room {
    fn put_waker(&self, number: u32) {
        // SAFETY: the model sees if somebody else is there.
        self.waker.with_mut(|waker| unsafe { *waker = Some(number) });
    }

    /// Takes the outcome and frees the room: all of it is the caller's.
    fn take(&self) -> u32 {
        self.taken.add();
        // SAFETY: the model sees if somebody else is there.
        self.waker.with_mut(|waker| unsafe { *waker = None });
        // SAFETY: as above.
        self.outcome.with_mut(|outcome| unsafe { (*outcome).take() }).expect("taken once")
    }

    /// The operation completes.
    fn complete(&self) -> Complete {
        // SAFETY: the model sees if somebody else is there.
        self.outcome.with_mut(|outcome| unsafe { *outcome = Some(7) });
        let complete = self.rendezvous.complete();
        match complete {
            Complete::Leave => {}
            Complete::Wake => {
                // SAFETY: the model sees if somebody else is there.
                let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
                let called = &self.called[waker.expect("a waker is in place") as usize];
                // It may be called as soon as the room is given up; the count is ours.
                let called = called.clone();
                self.rendezvous.left();
                thread::yield_now();
                called.add();
            }
            Complete::Free => _ = self.take(),
        }
        complete
    }
}

fn completer(room: &Arc<Room>) -> thread::JoinHandle<Complete> {
    let room = room.clone();
    thread::spawn(move || room.complete())
}

#[test]
fn the_operation_completes_while_the_future_begins_to_wait() {
    static AT_ONCE: Reached = Reached::new();
    static WHILE_WAITING_BEGAN: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(5, || {
        let room = Arc::new(Room::default());
        let completer = completer(&room);
        thread::yield_now();
        let at_once = room.rendezvous.completed_at_once();
        let mut wait = None;
        if !at_once {
            room.put_waker(0);
            wait = Some(room.rendezvous.wait());
        }
        if wait != Some(Wait::Wait) {
            assert_eq!(room.take(), 7);
        }
        let complete = completer.join().unwrap();
        if wait == Some(Wait::Wait) {
            assert_eq!((complete, room.called[0].get()), (Complete::Wake, 1), "a wake-up was lost");
            assert_eq!(room.rendezvous.peek(), Peek::Done);
            assert_eq!(room.take(), 7);
        }
        AT_ONCE.here_if(at_once);
        WHILE_WAITING_BEGAN.here_if(wait == Some(Wait::Done));
        WOKEN.here_if(wait == Some(Wait::Wait));
    });
    AT_ONCE.assert("it had completed");
    WHILE_WAITING_BEGAN.assert("it completed when the waker was put in place");
    WOKEN.assert("it called the waker");
}

#[test]
fn the_operation_completes_while_the_future_looks_again() {
    static NOT_YET: Reached = Reached::new();
    static DONE: Reached = Reached::new();
    static WHILE_LEAVING: Reached = Reached::new();
    explore(5, || {
        let room = Arc::new(Room::default());
        room.put_waker(0);
        assert_eq!(room.rendezvous.wait(), Wait::Wait);
        let completer = completer(&room);
        thread::yield_now();
        let look = room.rendezvous.peek();
        if look == Peek::Done {
            let called = room.called[0].get() == 1;
            assert_eq!(room.take(), 7);
            WHILE_LEAVING.here_if(!called);
            DONE.here();
        }
        assert_eq!(completer.join().unwrap(), Complete::Wake);
        assert_eq!(room.called[0].get(), 1);
        if look == Peek::NotYet {
            NOT_YET.here();
            assert_eq!(room.rendezvous.peek(), Peek::Done);
            assert_eq!(room.take(), 7);
        }
    });
    NOT_YET.assert("it was too early");
    DONE.assert("it was there");
    WHILE_LEAVING.assert("the operation had not called the waker yet");
}

#[test]
fn the_operation_completes_while_the_waker_is_changed() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(4, || {
        let room = Arc::new(Room::default());
        room.put_waker(0);
        assert_eq!(room.rendezvous.wait(), Wait::Wait);
        let completer = completer(&room);
        let change = room.rendezvous.change();
        if change == Peek::NotYet {
            room.put_waker(1);
            room.rendezvous.changed();
        } else {
            assert_eq!(room.take(), 7);
        }
        assert_eq!(completer.join().unwrap(), Complete::Wake);
        let called = [room.called[0].get(), room.called[1].get()];
        if change == Peek::NotYet {
            assert_eq!(called, [0, 1], "the waker that was put in place last is called");
            assert_eq!(room.rendezvous.peek(), Peek::Done);
            assert_eq!(room.take(), 7);
        }
        FIRST.here_if(called == [1, 0]);
        SECOND.here_if(called == [0, 1]);
        TOO_LATE.here_if(change == Peek::Done);
    });
    FIRST.assert("the first waker was called");
    SECOND.assert("the second waker was called");
    TOO_LATE.assert("it was too late to change");
}

#[test]
fn the_operation_completes_while_the_future_is_dropped() {
    static BY_THE_FUTURE: Reached = Reached::new();
    static BY_THE_OPERATION: Reached = Reached::new();
    for waits in [true, false] {
        explore(5, move || {
            let room = Arc::new(Room::default());
            if waits {
                room.put_waker(0);
                assert_eq!(room.rendezvous.wait(), Wait::Wait);
            }
            let completer = completer(&room);
            let abandon = room.rendezvous.abandon();
            if abandon == Abandon::Free {
                assert_eq!(room.take(), 7);
            }
            let complete = completer.join().unwrap();
            assert_eq!(room.taken.get(), 1, "destroyed once");
            assert_eq!(complete == Complete::Free, abandon == Abandon::Leave);
            BY_THE_FUTURE.here_if(abandon == Abandon::Free);
            BY_THE_OPERATION.here_if(abandon == Abandon::Leave);
        });
    }
    BY_THE_FUTURE.assert("the operation had completed");
    BY_THE_OPERATION.assert("the operation found nobody");
}

#[test]
fn the_waker_is_changed_and_the_future_dropped_while_the_operation_completes() {
    static CHANGED_AND_LEFT: Reached = Reached::new();
    static CHANGED_AND_FREED: Reached = Reached::new();
    explore(4, || {
        let room = Arc::new(Room::default());
        room.put_waker(0);
        assert_eq!(room.rendezvous.wait(), Wait::Wait);
        let completer = completer(&room);
        if room.rendezvous.change() == Peek::NotYet {
            room.put_waker(1);
            room.rendezvous.changed();
            match room.rendezvous.abandon() {
                Abandon::Leave => CHANGED_AND_LEFT.here(),
                Abandon::Free => {
                    CHANGED_AND_FREED.here();
                    assert_eq!(room.take(), 7);
                }
            }
        } else {
            assert_eq!(room.take(), 7);
        }
        completer.join().unwrap();
        assert_eq!(room.taken.get(), 1);
    });
    CHANGED_AND_LEFT.assert("the operation found nobody");
    CHANGED_AND_FREED.assert("the operation completed in between");
}
